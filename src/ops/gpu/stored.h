// Describes, as work.h does for others, the work of the kernel that decodes weights as a file has
// them.
#pragma once

#include <cstdint>

namespace braid::ops::gpu {

// How a file has numbers: ggml's blocks, in the order of ElementType, or bytes.
enum class Stored {
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
  kFloat8E4M3,
  kFloat8E5M2
};

// One run of numbers of every row: number i < count is number skipped + i of the row's blocks, of
// which the first is at `blocks` and each has so many numbers and bytes. Of float8, 16 are a block;
// the last may be cut short. y = number * scale
struct DecodeRows {
  Stored type;
  const std::uint8_t* blocks;
  std::int64_t row_bytes, numbers, bytes;
  const float* scales;  // of rows; may be nullptr
  void* y;
  std::int64_t width;  // of y's rows
  std::int64_t skipped, count;
};

}  // namespace braid::ops::gpu
