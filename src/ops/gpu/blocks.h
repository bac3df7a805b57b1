// The kernel that decodes weights as a file has them. For `run` see tokens.h; blocks are decoded by
// their definition (weights/codes/block_loops.h).
#pragma once

#include "ops/gpu/launch.h"
#include "ops/gpu/rows.h"
#include "weights/codes/block_loops.h"

namespace braid::ops::gpu {

// Neighbouring threads are the lanes of a decoder's vector: each receives every kLanesOfBlock-th
// number of a block and drops those outside the run.
template <class T>
struct ToLane {
  static constexpr int kLanes = kLanesOfBlock;
  T* out;              // the run's numbers
  std::int64_t begin;  // of the lane's first number in the run; may be negative
  std::int64_t count;  // of the run
  int lane;
  float scale;

  BRAID_DEVICE int bytes_at(const uint8_t* p) const { return p[lane]; }
  BRAID_DEVICE int codes_at(const uint8_t* p) const { return int8_t(p[lane]); }
  BRAID_DEVICE int bits_at(uint32_t bits, int i) const { return int(bits >> (i + lane) & 1); }
  BRAID_DEVICE static float numbers(int codes) { return float(codes); }
  BRAID_DEVICE static float chosen(const float (&numbers)[16], int place) { return numbers[place]; }
  BRAID_DEVICE bool is_in_run(int place) const {
    return begin + place >= 0 && begin + place < count;
  }
  BRAID_DEVICE void put(int place, float number) const {
    if (is_in_run(place)) round_to(out[begin + place], number * scale);
  }
};

// A lane outside the run may be behind the end of memory.
template <class To>
BRAID_DEVICE void decode_e4m3(const uint8_t* b, To to) {
  if (!to.is_in_run(0)) return;
  const Float8 code{b[to.lane]};
  to.put(0, (code.bits & 0x7f) == 0x7f ? NAN : to_float(code));
}

// The upper half of a float16.
template <class To>
BRAID_DEVICE void decode_e5m2(const uint8_t* b, To to) {
  if (to.is_in_run(0)) to.put(0, half_to_float(std::uint16_t(b[to.lane] << 8)));
}

template <class To>
BRAID_DEVICE void decode_block(Stored type, const uint8_t* block, To to) {
  switch (type) {
    case Stored::kQ4_0:
      return decode_q4_0(block, to);
    case Stored::kQ4_1:
      return decode_q4_1(block, to);
    case Stored::kQ5_0:
      return decode_q5_0(block, to);
    case Stored::kQ5_1:
      return decode_q5_1(block, to);
    case Stored::kQ8_0:
      return decode_q8_0(block, to);
    case Stored::kQ2_K:
      return decode_q2_k(block, to);
    case Stored::kQ3_K:
      return decode_q3_k(block, to);
    case Stored::kQ4_K:
      return decode_q4_k(block, to);
    case Stored::kQ5_K:
      return decode_q5_k(block, to);
    case Stored::kQ6_K:
      return decode_q6_k(block, to);
    case Stored::kIq4Nl:
      return decode_iq4_nl(block, to);
    case Stored::kIq4Xs:
      return decode_iq4_xs(block, to);
    case Stored::kFloat8E4M3:
      return decode_e4m3(block, to);
    case Stored::kFloat8E5M2:
      return decode_e5m2(block, to);
  }
}

template <class T, int N, class Block>
BRAID_DEVICE void run(const DecodeRows& work, Block& block) {
  const auto thread = vector_of_thread(block);
  const int lane = int(thread % kLanesOfBlock);
  const auto first = thread / kLanesOfBlock * work.numbers;  // of the blocks that hold the run
  if (first >= work.skipped + work.count) return;
  const std::int64_t row = block.row();
  const ToLane<T> to{static_cast<T*>(work.y) + row * work.width, first - work.skipped + lane,
                     work.count, lane, work.scales ? work.scales[row] : 1.f};
  decode_block(work.type, work.blocks + row * work.row_bytes + first / work.numbers * work.bytes,
               to);
}

}  // namespace braid::ops::gpu
