// What the elements of stored tensors are, and where in a file a tensor lies. Knows nothing of
// tensors as LibTorch has them, so that the parsers of headers can be fuzzed alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace braid {

enum class ElementType {
  // of safetensors files, in the order of its table
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
  // blocks of some numbers' codes with their scales, in the order of kBlockLoops
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
  kFloat4E2M1,         // two in a byte, the first in its low bits
  kFloat4E2M1Swapped,  // the first in its high bits
};

// `bytes` are stored for each `numbers`; both are 1 and more.
struct Block {
  std::int64_t numbers, bytes;
};

const char* element_type_name(ElementType type);  // as files spell it: "BF16", "Q4_K"
Block block_of(ElementType type);
bool is_of_blocks(ElementType type);  // no elements that can be addressed one by one
bool is_float8(ElementType type);     // that numbers are kept in: not of powers of two
bool is_float4(ElementType type);

struct TensorEntry {
  std::string name;
  ElementType type;
  std::vector<std::int64_t> shape;  // of numbers
  std::uint64_t begin, size;        // bytes, from the start of the file
};

// The bytes of numbers of this shape. Throws InputError that begins with `where` when the last dim
// is no multiple of a block or 64 bits do not hold them. Extents are not negative.
std::uint64_t bytes_of(const std::vector<std::int64_t>& shape, ElementType type,
                       const std::string& where);

// What a header leaves beside its tensors.
struct Coverage {
  std::uint64_t begin, end;      // where tensors may lie
  std::uint64_t padding_to = 1;  // a tensor begins at the next multiple of it
};
// One tensor after the other, no overlap, no gap but padding. Throws InputError.
void check_coverage(std::vector<TensorEntry> entries, const Coverage& coverage,
                    const std::string& source);

}  // namespace braid
