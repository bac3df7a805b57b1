// Blocks of 32 numbers of GGUF files, and single codes, to float32. Products of a block's scales
// and codes are exact in float32, so that each number is rounded once at most, whatever order they
// are multiplied in. https://github.com/ggml-org/ggml, ggml-quants.c
//
// All in an unnamed namespace: files that are compiled for one instruction set include it too.
#pragma once

#include <stdint.h>

#include "weights/codes/super_block_loops.h"

namespace braid {
namespace {

inline void decode_q4_0(const uint8_t* b, float* out) {
  const float d = float16_at(b);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * float(int(b[2 + i] & 15) - 8);
    out[16 + i] = d * float(int(b[2 + i] >> 4) - 8);
  }
}

inline void decode_q4_1(const uint8_t* b, float* out) {
  const float d = float16_at(b), m = float16_at(b + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * float(b[4 + i] & 15) + m;
    out[16 + i] = d * float(b[4 + i] >> 4) + m;
  }
}

// Bit i of the four bytes at p is the fifth of code i.
struct FifthBits {
  uint32_t bits;
  explicit FifthBits(const uint8_t* p)
      : bits(uint32_t(p[0]) | uint32_t(p[1]) << 8 | uint32_t(p[2]) << 16 | uint32_t(p[3]) << 24) {}
  int operator()(int i) const { return int((bits >> i & 1) << 4); }
};

inline void decode_q5_0(const uint8_t* b, float* out) {
  const float d = float16_at(b);
  const FifthBits fifth(b + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * float((int(b[6 + i] & 15) | fifth(i)) - 16);
    out[16 + i] = d * float((int(b[6 + i] >> 4) | fifth(16 + i)) - 16);
  }
}

inline void decode_q5_1(const uint8_t* b, float* out) {
  const float d = float16_at(b), m = float16_at(b + 2);
  const FifthBits fifth(b + 4);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * float(int(b[8 + i] & 15) | fifth(i)) + m;
    out[16 + i] = d * float(int(b[8 + i] >> 4) | fifth(16 + i)) + m;
  }
}

inline void decode_q8_0(const uint8_t* b, float* out) {
  const float d = float16_at(b);
  for (int i = 0; i < 32; ++i) out[i] = d * float(int8_t(b[2 + i]));
}

constexpr int8_t kUneven[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                1,    13,   25,  38,  53,  69,  89,  113};

inline void decode_uneven(const uint8_t* q, float scale, float* out) {
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * float(kUneven[q[i] & 15]);
    out[16 + i] = scale * float(kUneven[q[i] >> 4]);
  }
}

inline void decode_iq4_nl(const uint8_t* b, float* out) {
  decode_uneven(b + 2, float16_at(b), out);
}

inline void decode_iq4_xs(const uint8_t* b, float* out) {
  const float d = float16_at(b);
  const int high = b[2] | b[3] << 8;
  for (int i = 0; i < 8; ++i) {
    const int scale = (b[4 + i / 2] >> (4 * (i % 2)) & 15) | (high >> (2 * i) & 3) << 4;
    decode_uneven(b + 8 + 16 * i, d * float(scale - 32), out + 32 * i);
  }
}

// Magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6; bit 3 is the sign.
inline float float4_of(int code) {
  constexpr float kMagnitudes[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  const float size = kMagnitudes[code & 7];
  return code & 8 ? -size : size;
}

template <int kLow, int kHigh>
void decode_e2m1(const uint8_t* b, float* out) {
  out[kLow] = float4_of(*b & 15);
  out[kHigh] = float4_of(*b >> 4);
}

// `count` blocks, one after the other.
using DecodeBlocks = void(const uint8_t* blocks, int64_t count, float* out);

template <int kNumbers, int kBytes, void (*kDecode)(const uint8_t*, float*)>
void decode_each(const uint8_t* blocks, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) kDecode(blocks + i * kBytes, out + i * kNumbers);
}

constexpr DecodeBlocks* kBlockLoops[] = {
    &decode_each<32, 18, decode_q4_0>,     &decode_each<32, 20, decode_q4_1>,
    &decode_each<32, 22, decode_q5_0>,     &decode_each<32, 24, decode_q5_1>,
    &decode_each<32, 34, decode_q8_0>,     &decode_each<256, 84, decode_q2_k>,
    &decode_each<256, 110, decode_q3_k>,   &decode_each<256, 144, decode_q4_k>,
    &decode_each<256, 176, decode_q5_k>,   &decode_each<256, 210, decode_q6_k>,
    &decode_each<32, 18, decode_iq4_nl>,   &decode_each<256, 136, decode_iq4_xs>,
    &decode_each<2, 1, decode_e2m1<0, 1>>, &decode_each<2, 1, decode_e2m1<1, 0>>,
};

}  // namespace
}  // namespace braid
