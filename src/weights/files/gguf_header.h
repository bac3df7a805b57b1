// The header of a GGUF file, version 2 or 3: which tensors it holds, and where.
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <map>
#include <span>
#include <string>

#include "weights/files/element_type.h"

namespace braid {

bool begins_as_gguf(std::span<const std::byte> file);

// Parses the whole file's bytes, skipping most metadata. Shapes have the outermost dim first, and
// are those that ComfyUI-GGUF notes for tensors stored in another shape. The result is verified:
// every entry lies inside the file, has the size of its shape and type and overlaps no other, and
// names are unique. Throws InputError that begins with `source`; allocates in proportion to the
// header's true size.
std::vector<TensorEntry> parse_gguf_header(std::span<const std::byte> file,
                                           const std::string& source);

// The metadata of a file whose header has been parsed, as far as it is text: "general.name".
std::map<std::string, std::string> gguf_notes(std::span<const std::byte> file);

}  // namespace braid
