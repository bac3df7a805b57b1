// The element types of stored tensors, and where in a file a tensor lies. Independent of LibTorch's
// tensors, so that the header parsers can be fuzzed alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "braid/error.h"

namespace braid {

// A file is whole, but its numbers are coded in a way that only other programs read.
class OtherCoding : public InputError {
 public:
  using InputError::InputError;
};

enum class ElementType {
  // safetensors types, in the order of its table
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
  kFloat8E8M0,  // powers of two, for scales
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kComplex64,  // this and the next are only stored: nothing computes with them
  kFloat8E4M3Fnuz,
  kFloat8E5M2Fnuz,
  // blocks of codes with their scales, in the order of kBlockLoops
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIq4Nl,
  kIq4Xs,
  kFloat4E2M1,         // two per byte, the first in the low bits
  kFloat4E2M1Swapped,  // the first in the high bits
};

// `bytes` are stored per `numbers`; both are at least 1.
struct Block {
  std::int64_t numbers, bytes;
};

const char* element_type_name(ElementType type);  // in the files' spelling: "BF16", "Q4_K"
Block block_of(ElementType type);
bool is_of_blocks(ElementType type);  // elements are not addressable one by one
bool is_float8(ElementType type);     // holds numbers; excludes powers of two
bool is_float4(ElementType type);

struct TensorEntry {
  std::string name;
  ElementType type;
  std::vector<std::int64_t> shape;  // of numbers
  std::uint64_t begin, size;        // bytes, from the start of the file
};

// The bytes of a tensor of this shape. Throws InputError that begins with `where` if the last dim
// is not a multiple of a block or the size overflows 64 bits. Extents are not negative.
std::uint64_t bytes_of(const std::vector<std::int64_t>& shape, ElementType type,
                       const std::string& where);

// The part of a file that a header leaves for tensors.
struct Coverage {
  std::uint64_t begin, end;      // where tensors may lie
  std::uint64_t padding_to = 1;  // tensors begin at multiples of this
};
// Checks that tensors follow each other without overlap or gap except padding. Throws InputError.
void check_coverage(std::vector<TensorEntry> entries, const Coverage& coverage,
                    const std::string& source);

}  // namespace braid
