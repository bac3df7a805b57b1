// Loops that decode weights as files have them, equal to their definition. Compiled once for each
// instruction set; see rows.cc for why nothing else is in that file.
#pragma once

#include <cstdint>

namespace braid::ops {

struct BlockKernels {
  using Decode = void(const std::uint8_t* blocks, std::int64_t count, float* out);
  using Scale = void(const float* numbers, float scale, std::int64_t count, void* out);

  Decode* const* blocks;  // in the order of ElementType from kQ4_0 on
  Decode *e4m3, *e5m2;    // codes of one byte
  // number * scale, as float32 or rounded once more to bfloat16
  Scale *to_float32, *to_bfloat16;
};

// The best that this machine can run.
const BlockKernels& block_kernels();

}  // namespace braid::ops
