// Decoders for GGUF's blocks of 256 numbers; see block_loops.h.
#pragma once

#include <stdint.h>

namespace braid {
namespace {

// Reads two bytes as float16.
BRAID_DEVICE inline float float16_at(const uint8_t* p) {
  const uint32_t bits = uint32_t(p[0]) | uint32_t(p[1]) << 8;
  const uint32_t sign = (bits & 0x8000) << 16, rest = bits & 0x7fff;
  if (rest < 0x400) {  // subnormal
    const float size = float(rest) * 0x1p-24f;
    return sign ? -size : size;
  }
  const uint32_t exponent =
      rest < 0x7c00 ? (rest << 13) + (112u << 23) : 0x7f800000u | (rest & 0x3ff) << 13;
  return __builtin_bit_cast(float, sign | exponent);
}

// Two-bit codes: 16 bytes hold four runs of 16 numbers, run i in bits 2 i and 2 i + 1. Calls
// body(run, offset of its bytes, i) for a block's 16 runs, unrolled: shifts by i are constants.
template <class Body>
BRAID_DEVICE void for_runs_of_fours(Body body) {
  for (int half = 0; half < 2; ++half)
    for (int side = 0; side < 2; ++side)
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) body(8 * half + 2 * i + side, 32 * half + 16 * side, i);
}

// Each run of 16 numbers has a scale and an offset of four bits.
template <class To>
BRAID_DEVICE void decode_q2_k(const uint8_t* b, To to) {
  const float d = float16_at(b + 80), dmin = float16_at(b + 82);
  for_runs_of_fours([&](int run, int place, int i) {
    const float scale = d * float(b[run] & 15), offset = dmin * float(b[run] >> 4);
    for (int at = 0; at < 16; at += To::kLanes) {
      const auto two = to.bytes_at(b + 16 + place + at) >> (2 * i) & 3;
      to.put(16 * run + at, scale * To::numbers(two) - offset);
    }
  });
}

// Each 16 numbers have a scale of six bits: four in the first eight bytes, two in the last four.
template <class To>
BRAID_DEVICE void decode_q3_k(const uint8_t* b, To to) {
  const uint8_t* const scales = b + 96;
  const float d = float16_at(b + 108);
  for_runs_of_fours([&](int run, int place, int i) {
    const int low4 = run < 8 ? scales[run] & 15 : scales[run - 8] >> 4;
    const int high2 = scales[8 + run % 4] >> (2 * (run / 4)) & 3;
    const float scale = d * float((low4 | high2 << 4) - 32);
    for (int at = 0; at < 16; at += To::kLanes) {
      const auto two = to.bytes_at(b + 32 + place + at) >> (2 * i) & 3;
      const auto third = to.bytes_at(b + place % 32 + at) >> (run / 2) & 1;
      to.put(16 * run + at, scale * To::numbers(two - 4 + third * 4));
    }
  });
}

// The scale and offset of the i-th 32 numbers, decoded from twelve bytes of six-bit ones.
struct ScaleAndOffset {
  float scale, offset;
};
BRAID_DEVICE inline ScaleAndOffset six_bits_at(const uint8_t* p, int i, float d, float dmin) {
  if (i < 4) return {d * float(p[i] & 63), dmin * float(p[i + 4] & 63)};
  const int scale = (p[i + 4] & 15) | (p[i - 4] >> 6) << 4;
  const int offset = p[i + 4] >> 4 | (p[i] >> 6) << 4;
  return {d * float(scale), dmin * float(offset)};
}

template <class To>
BRAID_DEVICE void decode_q4_k(const uint8_t* b, To to) {
  const float d = float16_at(b), dmin = float16_at(b + 2);
  for (int group = 0; group < 4; ++group) {
    const uint8_t* const q = b + 16 + 32 * group;
    const auto low = six_bits_at(b + 4, 2 * group, d, dmin);
    const auto high = six_bits_at(b + 4, 2 * group + 1, d, dmin);
    for (int i = 0; i < 32; i += To::kLanes) {
      const auto codes = to.bytes_at(q + i);
      to.put(64 * group + i, low.scale * To::numbers(codes & 15) - low.offset);
      to.put(64 * group + 32 + i, high.scale * To::numbers(codes >> 4) - high.offset);
    }
  }
}

template <class To>
BRAID_DEVICE void decode_q5_k(const uint8_t* b, To to) {
  const float d = float16_at(b), dmin = float16_at(b + 2);
  for (int group = 0; group < 4; ++group) {
    const uint8_t* const q = b + 48 + 32 * group;
    const auto low = six_bits_at(b + 4, 2 * group, d, dmin);
    const auto high = six_bits_at(b + 4, 2 * group + 1, d, dmin);
    for (int i = 0; i < 32; i += To::kLanes) {
      const auto codes = to.bytes_at(q + i), fifths = to.bytes_at(b + 16 + i) >> (2 * group);
      const auto first = (codes & 15) | (fifths & 1) << 4, second = codes >> 4 | (fifths & 2) << 3;
      to.put(64 * group + i, low.scale * To::numbers(first) - low.offset);
      to.put(64 * group + 32 + i, high.scale * To::numbers(second) - high.offset);
    }
  }
}

template <class To>
BRAID_DEVICE void decode_q6_k(const uint8_t* b, To to) {
  const float d = float16_at(b + 208);
  for_runs_of_fours([&](int run, int place, int i) {
    const float scale = d * float(int8_t(b[192 + run]));
    const uint8_t* const low = b + 2 * place - place % 32 + i % 2 * 32;
    const uint8_t* const high = b + 128 + place;
    for (int at = 0; at < 16; at += To::kLanes) {
      const auto four = to.bytes_at(low + at) >> (i / 2 * 4) & 15;
      const auto two = to.bytes_at(high + at) >> (2 * i) & 3;
      to.put(16 * run + at, scale * To::numbers((four | two << 4) - 32));
    }
  });
}

}  // namespace
}  // namespace braid
