// The header of a safetensors file: which tensors it holds, and where.
#pragma once

#include <map>
#include <span>
#include <string>

#include "weights/files/element_type.h"

namespace braid {

// Parses the whole file's bytes. The result is verified: every entry lies inside the file, has the
// size of its shape and type and overlaps no other, and names are unique. Throws InputError that
// begins with `source`; allocates in proportion to the header's true size.
std::vector<TensorEntry> parse_safetensors_header(std::span<const std::byte> file,
                                                  const std::string& source);

// The metadata entry `key` of a file whose header has been parsed; empty if absent.
std::string safetensors_note(std::span<const std::byte> file, const std::string& key);

// All of its metadata that is text.
std::map<std::string, std::string> safetensors_notes(std::span<const std::byte> file);

}  // namespace braid
