// Decoders for GGUF's blocks of 32 numbers, and the table of all. Products of a block's scales and
// codes are exact in float32, so each number is rounded at most once, in any order of
// multiplication. https://github.com/ggml-org/ggml, ggml-quants.c
//
// `To` receives a block's numbers, kLanes at a time: to.put(index of the first, float32 numbers).
// It also has what decoders compute with, kLanes values each: bytes_at() (unsigned), codes_at()
// (signed), bits_at(), numbers() (integers to float32), chosen() (a look-up in 16 numbers).
//
// Files compiled for one instruction set include this, hence the unnamed namespace, and kernels for
// GPUs (C++17): the including file defines BRAID_DEVICE, the qualifiers of device functions.
#pragma once

#include <stdint.h>

#include "weights/codes/super_block_loops.h"

namespace braid {
namespace {

template <class To>
BRAID_DEVICE void decode_q4_0(const uint8_t* b, To to) {
  const float d = float16_at(b);
  for (int i = 0; i < 16; i += To::kLanes) {
    const auto codes = to.bytes_at(b + 2 + i);
    to.put(i, d * To::numbers((codes & 15) - 8));
    to.put(16 + i, d * To::numbers((codes >> 4) - 8));
  }
}

template <class To>
BRAID_DEVICE void decode_q4_1(const uint8_t* b, To to) {
  const float d = float16_at(b), m = float16_at(b + 2);
  for (int i = 0; i < 16; i += To::kLanes) {
    const auto codes = to.bytes_at(b + 4 + i);
    to.put(i, d * To::numbers(codes & 15) + m);
    to.put(16 + i, d * To::numbers(codes >> 4) + m);
  }
}

// Bit i of these four bytes is the fifth bit of code i.
BRAID_DEVICE inline uint32_t fifth_bits(const uint8_t* p) {
  return uint32_t(p[0]) | uint32_t(p[1]) << 8 | uint32_t(p[2]) << 16 | uint32_t(p[3]) << 24;
}

template <class To>
BRAID_DEVICE void decode_q5_0(const uint8_t* b, To to) {
  const float d = float16_at(b);
  const auto fifth = fifth_bits(b + 2);
  for (int i = 0; i < 16; i += To::kLanes) {
    const auto codes = to.bytes_at(b + 6 + i);
    to.put(i, d * To::numbers(((codes & 15) | to.bits_at(fifth, i) << 4) - 16));
    to.put(16 + i, d * To::numbers((codes >> 4 | to.bits_at(fifth, 16 + i) << 4) - 16));
  }
}

template <class To>
BRAID_DEVICE void decode_q5_1(const uint8_t* b, To to) {
  const float d = float16_at(b), m = float16_at(b + 2);
  const auto fifth = fifth_bits(b + 4);
  for (int i = 0; i < 16; i += To::kLanes) {
    const auto codes = to.bytes_at(b + 8 + i);
    to.put(i, d * To::numbers((codes & 15) | to.bits_at(fifth, i) << 4) + m);
    to.put(16 + i, d * To::numbers(codes >> 4 | to.bits_at(fifth, 16 + i) << 4) + m);
  }
}

template <class To>
BRAID_DEVICE void decode_q8_0(const uint8_t* b, To to) {
  const float d = float16_at(b);
  for (int i = 0; i < 32; i += To::kLanes) to.put(i, d * To::numbers(to.codes_at(b + 2 + i)));
}

template <class To>
BRAID_DEVICE void decode_uneven(const uint8_t* q, float scale, To to, int first) {
  alignas(64) static constexpr float kUneven[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                    1,    13,   25,  38,  53,  69,  89,  113};
  for (int i = 0; i < 16; i += To::kLanes) {
    const auto codes = to.bytes_at(q + i);
    to.put(first + i, scale * To::chosen(kUneven, codes & 15));
    to.put(first + 16 + i, scale * To::chosen(kUneven, codes >> 4));
  }
}

template <class To>
BRAID_DEVICE void decode_iq4_nl(const uint8_t* b, To to) {
  decode_uneven(b + 2, float16_at(b), to, 0);
}

template <class To>
BRAID_DEVICE void decode_iq4_xs(const uint8_t* b, To to) {
  const float d = float16_at(b);
  const int high = b[2] | b[3] << 8;
  for (int i = 0; i < 8; ++i) {
    const int scale = (b[4 + i / 2] >> (4 * (i % 2)) & 15) | (high >> (2 * i) & 3) << 4;
    decode_uneven(b + 8 + 16 * i, d * float(scale - 32), to, 32 * i);
  }
}

// Decodes `count` adjacent blocks and multiplies their numbers by `scale`.
template <class To>
using DecodeBlocks = void(const uint8_t* blocks, int64_t count, float scale,
                          typename To::Number* out);

template <int kNumbers, int kBytes, class To, void (*kDecode)(const uint8_t*, To)>
void decode_each(const uint8_t* blocks, int64_t count, float scale, typename To::Number* out) {
  for (int64_t i = 0; i < count; ++i) kDecode(blocks + i * kBytes, To{out + i * kNumbers, scale});
}

// Indexed by ElementType, from kQ4_0 on.
template <class To>
constexpr DecodeBlocks<To>* kBlockLoops[] = {
    &decode_each<32, 18, To, decode_q4_0>,   &decode_each<32, 20, To, decode_q4_1>,
    &decode_each<32, 22, To, decode_q5_0>,   &decode_each<32, 24, To, decode_q5_1>,
    &decode_each<32, 34, To, decode_q8_0>,   &decode_each<256, 84, To, decode_q2_k>,
    &decode_each<256, 110, To, decode_q3_k>, &decode_each<256, 144, To, decode_q4_k>,
    &decode_each<256, 176, To, decode_q5_k>, &decode_each<256, 210, To, decode_q6_k>,
    &decode_each<32, 18, To, decode_iq4_nl>, &decode_each<256, 136, To, decode_iq4_xs>};

}  // namespace
}  // namespace braid
