// The header of a GGUF file, version 2 or 3: what tensors it holds, and where.
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include "weights/files/element_type.h"

namespace braid {

bool begins_as_gguf(std::span<const std::byte> file);

// Parses the whole file's bytes; what the file says of itself beside its tensors is passed over.
// Shapes have the outermost dim first. The result holds for the file at hand: every entry lies
// inside it, has the size of its shape and type, overlaps no other, and no name occurs twice.
// Throws InputError that begins with `source`; allocates in proportion to the header's true size.
std::vector<TensorEntry> parse_gguf_header(std::span<const std::byte> file,
                                           const std::string& source);

}  // namespace braid
