// The header of a safetensors file: what tensors it holds, and where. Knows nothing of tensors as
// LibTorch has them, so that the parser can be fuzzed alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace braid {

enum class ElementType {
  kBool,
  kUint8,
  kInt8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat8E4M3,
  kFloat8E5M2,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
};

const char* element_type_name(ElementType type);  // as the format spells it: "BF16"
std::uint64_t size_of(ElementType type);          // bytes an element

struct TensorEntry {
  std::string name;
  ElementType type;
  std::vector<std::int64_t> shape;
  std::uint64_t begin, size;  // bytes, from the start of the file
};

// Parses the whole file's bytes. The result holds for the file at hand: every entry lies inside it,
// has the size of its shape and type, overlaps no other, and no name occurs twice.
// Throws InputError that begins with `source`; allocates in proportion to the header's true size.
std::vector<TensorEntry> parse_safetensors_header(std::span<const std::byte> file,
                                                  const std::string& source);

}  // namespace braid
