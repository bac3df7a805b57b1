// The header of a safetensors file: what tensors it holds, and where.
#pragma once

#include "weights/files/element_type.h"

namespace braid {

// Parses the whole file's bytes. The result holds for the file at hand: every entry lies inside it,
// has the size of its shape and type, overlaps no other, and no name occurs twice.
// Throws InputError that begins with `source`; allocates in proportion to the header's true size.
std::vector<TensorEntry> parse_safetensors_header(std::span<const std::byte> file,
                                                  const std::string& source);

// What a file whose header has been parsed notes under `key` beside its tensors; else empty.
std::string safetensors_note(std::span<const std::byte> file, const std::string& key);

}  // namespace braid
