// Compiled once per instruction set, into its own namespace (BRAID_ISA) and with its vectors; see
// rows.cc.
#include "ops/kernels/blocks.h"

#include <stdint.h>

#include BRAID_VECTORS

#define BRAID_DEVICE
#include "weights/codes/block_loops.h"

namespace braid::ops::BRAID_ISA {
namespace {

using int64 = std::int64_t;

constexpr int kWidth = BRAID_ISA::kLanes;
typedef uint32_t Words __attribute__((vector_size(4 * kWidth)));
typedef float Unaligned __attribute__((vector_size(4 * kWidth), aligned(4), may_alias));

inline void store(Floats numbers, float* out) { *(Unaligned*)out = numbers; }

// Rounds to nearest, ties to even.
inline void store(Floats numbers, uint16_t* out) {
  const auto bits = (Words)numbers;
  const Words up = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  put_halves((Ints)(numbers == numbers ? up : Words{} + 0x7fc0), out);
}

inline Ints counted() {
  Ints lanes = {};
  for (int i = 0; i < kWidth; ++i) lanes[i] = i;
  return lanes;
}

// Receives a vector at a time; see block_loops.h.
template <class Result>
struct ToVectors {
  using Number = Result;
  static constexpr int kLanes = kWidth;
  Number* out;
  float scale;

  static Ints bytes_at(const uint8_t* p) { return BRAID_ISA::bytes_at(p); }
  static Ints codes_at(const uint8_t* p) { return BRAID_ISA::codes_at(p); }
  static Ints bits_at(uint32_t bits, int i) {
    return (Ints)((Words{} + bits) >> (Words)(counted() + i) & 1);
  }
  static Floats numbers(Ints codes) { return __builtin_convertvector(codes, Floats); }
  static Floats chosen(const float (&numbers)[16], Ints places) {
    return BRAID_ISA::chosen(numbers, places);
  }
  void put(int64 place, Floats numbers) const { store(numbers * scale, out + place); }
};

// Codes of a sign, `kExponent` bits of exponent and the rest mantissa. Magnitudes from
// `kFirstSpecial` on are NaN, except for `kInfinity`.
template <int kExponent, int kFirstSpecial, int kInfinity>
Floats float8_numbers(Ints codes) {
  constexpr int kMantissa = 7 - kExponent, kBias = (1 << (kExponent - 1)) - 1;
  constexpr float kLeast = 1.0f / float(1 << (kBias - 1 + kMantissa));  // subnormal
  const Ints sign = (codes & 0x80) << 24, size = codes & 0x7f;
  const Ints normal = (size << (23 - kMantissa)) + ((127 - kBias) << 23);
  const Ints small = (Ints)(__builtin_convertvector(size, Floats) * kLeast);
  const Ints special = size == kInfinity ? Ints{} + 0x7f800000 : Ints{} + 0x7fc00000;
  const Ints number = size < (1 << kMantissa) ? small : normal;
  return (Floats)(sign | (size < kFirstSpecial ? number : special));
}

template <class Number, Floats (*kNumbers)(Ints)>
void decode_float8(const uint8_t* codes, int64 count, float scale, Number* out) {
  const ToVectors<Number> to{out, scale};
  int64 i = 0;
  for (; i + kWidth <= count; i += kWidth) to.put(i, kNumbers(bytes_at(codes + i)));
  if (i == count) return;
  uint8_t rest[kWidth] = {};
  Number numbers[kWidth];
  for (int64 j = i; j < count; ++j) rest[j - i] = codes[j];
  ToVectors<Number>{numbers, scale}.put(0, kNumbers(bytes_at(rest)));
  for (int64 j = i; j < count; ++j) out[j] = numbers[j - i];
}

template <class Number>
constexpr BlockKernels::Loops<Number> kLoops = {
    .blocks = kBlockLoops<ToVectors<Number>>,
    .e4m3 = &decode_float8<Number, &float8_numbers<4, 0x7f, 0x80>>,  // nothing is infinite
    .e5m2 = &decode_float8<Number, &float8_numbers<5, 0x7c, 0x7c>>};

}  // namespace

extern const BlockKernels kBlocks;
const BlockKernels kBlocks = {.to_float32 = kLoops<float>, .to_bfloat16 = kLoops<uint16_t>};

}  // namespace braid::ops::BRAID_ISA
