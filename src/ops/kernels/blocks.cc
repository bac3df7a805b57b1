// Compiled several times, each time for another instruction set and into another namespace
// (BRAID_ISA); see rows.cc.
#include "ops/kernels/blocks.h"

#include <stdint.h>

#include "weights/codes/block_loops.h"

namespace braid::ops::BRAID_ISA {
namespace {

// Codes with a sign, exponents of `kExponent` bits and mantissas of the rest. The largest
// magnitudes from `kFirstSpecial` on are no numbers, or infinite.
template <int kExponent, int kFirstSpecial, int kInfinity>
void float8_numbers(const uint8_t* codes, int64_t count, float* out) {
  constexpr int kMantissa = 7 - kExponent, kBias = (1 << (kExponent - 1)) - 1;
  constexpr float kLeast = 1.0f / float(1 << (kBias - 1 + kMantissa));  // of those below the normal
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t sign = uint32_t(codes[i] & 0x80) << 24, size = codes[i] & 0x7f;
    const uint32_t normal = (size << (23 - kMantissa)) + (uint32_t(127 - kBias) << 23);
    const uint32_t small = __builtin_bit_cast(uint32_t, float(int(size)) * kLeast);
    const uint32_t special = size == kInfinity ? 0x7f800000u : 0x7fc00000u;
    const uint32_t bits = size < (1u << kMantissa) ? small
                          : size < kFirstSpecial   ? normal
                                                   : special;
    out[i] = __builtin_bit_cast(float, sign | bits);
  }
}

void to_float32(const float* numbers, float scale, int64_t count, void* out_) {
  auto* const out = static_cast<float*>(out_);
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) out[i] = numbers[i] * scale;
}

// To nearest, half to even.
void to_bfloat16(const float* numbers, float scale, int64_t count, void* out_) {
  auto* const out = static_cast<uint16_t*>(out_);
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, numbers[i] * scale);
    const uint32_t up = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    out[i] = uint16_t((bits & 0x7fffffff) <= 0x7f800000 ? up : 0x7fc0);
  }
}

}  // namespace

extern const BlockKernels kBlocks;
const BlockKernels kBlocks = {.blocks = kBlockLoops,
                              .e4m3 = &float8_numbers<4, 0x7f, 0x80>,  // nothing is infinite
                              .e5m2 = &float8_numbers<5, 0x7c, 0x7c>,
                              .to_float32 = &to_float32,
                              .to_bfloat16 = &to_bfloat16};

}  // namespace braid::ops::BRAID_ISA
