// Loops that decode weights as stored, equal to their definition. Compiled once per instruction
// set; rows.cc says why that file contains nothing else.
#pragma once

#include <cstdint>

namespace braid::ops {

struct BlockKernels {
  // The numbers of `count` blocks times `scale`: in float32, or rounded once more to bfloat16.
  template <class Number>
  using Decode = void(const std::uint8_t* blocks, std::int64_t count, float scale, Number* out);
  template <class Number>
  struct Loops {
    Decode<Number>* const* blocks;  // in the order of ElementType from kQ4_0 on
    Decode<Number>*e4m3, *e5m2;     // codes of one byte
  };

  Loops<float> to_float32;
  Loops<std::uint16_t> to_bfloat16;
};

// The best kernels this machine can run.
const BlockKernels& block_kernels();

}  // namespace braid::ops
