// Blocks of 256 numbers of GGUF files to float32; see block_loops.h.
#pragma once

#include <stdint.h>

namespace braid {
namespace {

// Two bytes as float16.
inline float float16_at(const uint8_t* p) {
  const uint32_t bits = uint32_t(p[0]) | uint32_t(p[1]) << 8;
  const uint32_t sign = (bits & 0x8000) << 16, rest = bits & 0x7fff;
  if (rest < 0x400) {  // below the normal numbers
    const float size = float(rest) * 0x1p-24f;
    return sign ? -size : size;
  }
  const uint32_t exponent =
      rest < 0x7c00 ? (rest << 13) + (112u << 23) : 0x7f800000u | (rest & 0x3ff) << 13;
  return __builtin_bit_cast(float, sign | exponent);
}

// 16 numbers have a scale and an offset, four bits each.
inline void decode_q2_k(const uint8_t* b, float* out) {
  const uint8_t* const codes = b + 16;
  const float d = float16_at(b + 80), dmin = float16_at(b + 82);
  for (int run = 0; run < 16; ++run) {
    const float scale = d * float(b[run] & 15), offset = dmin * float(b[run] >> 4);
    const uint8_t* const q = codes + run / 8 * 32 + run % 2 * 16;
    const int shift = run % 8 / 2 * 2;
    for (int i = 0; i < 16; ++i) out[16 * run + i] = scale * float(q[i] >> shift & 3) - offset;
  }
}

// 16 numbers have a scale of six bits: four in the first eight bytes, two in the last four.
inline void decode_q3_k(const uint8_t* b, float* out) {
  const uint8_t *const high = b, *const codes = b + 32, *const scales = b + 96;
  const float d = float16_at(b + 108);
  for (int run = 0; run < 16; ++run) {
    const int low4 = run < 8 ? scales[run] & 15 : scales[run - 8] >> 4;
    const int high2 = scales[8 + run % 4] >> (2 * (run / 4)) & 3;
    const float scale = d * float((low4 | high2 << 4) - 32);
    const uint8_t *const q = codes + run / 8 * 32 + run % 2 * 16, *const h = high + run % 2 * 16;
    const int shift = run % 8 / 2 * 2, bit = run / 2;
    for (int i = 0; i < 16; ++i)
      out[16 * run + i] = scale * float(int(q[i] >> shift & 3) - 4 + int(h[i] >> bit & 1) * 4);
  }
}

// Of sub-block i of 32 numbers, from the twelve bytes of scales and offsets of six bits.
struct ScaleAndOffset {
  float scale, offset;
};
inline ScaleAndOffset six_bits_at(const uint8_t* p, int i, float d, float dmin) {
  if (i < 4) return {d * float(p[i] & 63), dmin * float(p[i + 4] & 63)};
  const int scale = (p[i + 4] & 15) | (p[i - 4] >> 6) << 4;
  const int offset = p[i + 4] >> 4 | (p[i] >> 6) << 4;
  return {d * float(scale), dmin * float(offset)};
}

inline void decode_q4_k(const uint8_t* b, float* out) {
  const float d = float16_at(b), dmin = float16_at(b + 2);
  for (int group = 0; group < 4; ++group) {
    const uint8_t* const q = b + 16 + 32 * group;
    const auto low = six_bits_at(b + 4, 2 * group, d, dmin);
    const auto high = six_bits_at(b + 4, 2 * group + 1, d, dmin);
    float* const to = out + 64 * group;
    for (int i = 0; i < 32; ++i) to[i] = low.scale * float(q[i] & 15) - low.offset;
    for (int i = 0; i < 32; ++i) to[32 + i] = high.scale * float(q[i] >> 4) - high.offset;
  }
}

inline void decode_q5_k(const uint8_t* b, float* out) {
  const float d = float16_at(b), dmin = float16_at(b + 2);
  const uint8_t* const fifth = b + 16;
  for (int group = 0; group < 4; ++group) {
    const uint8_t* const q = b + 48 + 32 * group;
    const auto low = six_bits_at(b + 4, 2 * group, d, dmin);
    const auto high = six_bits_at(b + 4, 2 * group + 1, d, dmin);
    float* const to = out + 64 * group;
    const int bit = 2 * group;
    for (int i = 0; i < 32; ++i)
      to[i] = low.scale * float((q[i] & 15) | (fifth[i] >> bit & 1) << 4) - low.offset;
    for (int i = 0; i < 32; ++i)
      to[32 + i] = high.scale * float(q[i] >> 4 | (fifth[i] >> (bit + 1) & 1) << 4) - high.offset;
  }
}

inline void decode_q6_k(const uint8_t* b, float* out) {
  const auto* const scales = reinterpret_cast<const int8_t*>(b + 192);
  const float d = float16_at(b + 208);
  for (int run = 0; run < 16; ++run) {
    const int half = run / 8, quarter = run % 8 / 2, first = run % 2 * 16;
    const float scale = d * float(scales[run]);
    const uint8_t* const low = b + 64 * half + quarter % 2 * 32 + first;
    const uint8_t* const high = b + 128 + 32 * half + first;
    const int low_shift = quarter / 2 * 4, high_shift = 2 * quarter;
    for (int i = 0; i < 16; ++i) {
      const int code = (low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4;
      out[16 * run + i] = scale * float(code - 32);
    }
  }
}

}  // namespace
}  // namespace braid
