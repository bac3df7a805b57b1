// Flash attention (Dao et al., 2022) by tiles. Compiled as tiles.cc is: for Intel AMX and, for
// tests, for any machine with tiles made of loops (BRAID_VECTORS).
#include "ops/tiled_attention.h"

#include <stdint.h>

#include BRAID_VECTORS

namespace braid::ops::BRAID_ISA {
namespace {

using int64 = std::int64_t;
using Kernels = AttentionKernels;

constexpr int kPanel = Kernels::kPanel, kStride = Kernels::kStride, kParts = Kernels::kParts;
static_assert(Kernels::kRows == 2 * kTile && kPanel == 2 * kTile && kParts == kTile);

// In static memory: the compiler does not know what the intrinsic reads.
constexpr Shapes kShapes = shapes_of(Kernels::kRows);

constexpr int64 whole_panels(int64 keys) { return (keys + kPanel - 1) / kPanel * kPanel; }

// ------------------------------------------------------------------------------------ values

typedef uint16_t SixteenHalves __attribute__((vector_size(32), aligned(2), may_alias));

void pack_values(const uint16_t* row, int64 stride, int64 keys, int64 width, float* panels) {
  const auto pairs = whole_panels(keys) / 2;
  const auto words = [&](int64 key, int64 column) {
    if (key >= keys) return SixteenWords{};
    return __builtin_convertvector(*(const SixteenHalves*)(row + key * stride + column),
                                   SixteenWords);
  };
  for (int64 c = 0; c < pairs; ++c)
    for (int64 d = 0; d < width; d += kTile)
      *(SixteenWords*)(panels + (d / kPanel * pairs + c) * kPanel + d % kPanel) =
          words(2 * c, d) | words(2 * c + 1, d) << 16;
}

// ---------------------------------------------------------------------------------- products

// The compiler does not know what tiles are loaded from, and might not have written it.
inline void write_memory() { __asm__ volatile("" ::: "memory"); }

// sums += a strip of x, whose rows are `stride` words apart, times a panel; both `depth` words
// deep.
inline void add_products(const float* x, int64 stride, const float* panel, int64 depth) {
  const auto bytes = stride * int64(sizeof(float));
  constexpr auto kPanelBytes = kPanel * int64(sizeof(float));
  for (int64 c = 0; c < depth; c += kTile) {
    _tile_loadd(4, x + c, bytes);
    _tile_loadd(6, panel + c * kPanel, kPanelBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, panel + c * kPanel + kTile, kPanelBytes);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, x + kTile * stride + c, bytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

inline void clear_sums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

inline void load_sums(const float* from, int64 stride) {
  const auto bytes = stride * int64(sizeof(float));
  _tile_loadd(0, from, bytes);
  _tile_loadd(1, from + kTile, bytes);
  _tile_loadd(2, from + kTile * stride, bytes);
  _tile_loadd(3, from + kTile * stride + kTile, bytes);
}

inline void store_sums(float* to, int64 stride) {
  const auto bytes = stride * int64(sizeof(float));
  _tile_stored(0, to, bytes);
  _tile_stored(1, to + kTile, bytes);
  _tile_stored(2, to + kTile * stride, bytes);
  _tile_stored(3, to + kTile * stride + kTile, bytes);
}

// A strip of queries and some keys.
struct Part {
  int64 row, key, keys;
};

// scores = Q K^T
void multiply_by_keys(const AttentionBlock& b, const Part& part) {
  const auto depth = b.width / 2;
  write_memory();
  for (int64 n = 0; n < part.keys; n += kPanel) {
    clear_sums();
    add_products(b.queries + part.row * depth, depth, b.keys + (part.key + n) * depth, depth);
    store_sums(b.scores + n, kStride);
  }
}

// sums += P V
void add_values(const AttentionBlock& b, const Part& part) {
  write_memory();
  for (int64 d = 0; d < b.width; d += kPanel) {
    const auto* const panel = b.values + (d * whole_panels(b.num_keys) + part.key * kPanel) / 2;
    auto* const sums = b.sums + part.row * b.width + d;
    load_sums(sums, b.width);
    add_products(b.scores, kStride, panel, whole_panels(part.keys) / 2);
    store_sums(sums, b.width);
  }
}

// ----------------------------------------------------------------------------------- softmax

// 2^x for x <= 1, where it is below 2^-126 that: 2^n 2^f with |f| <= 1/2, 2^f by the polynomial of
// least relative error (Remez), 9e-8; 1.6e-7 in float32. A number plus kMagic has n + 127 in its
// last bits.
inline Sixteen power_of_2(Sixteen x) {
  constexpr float kMagic = 3 * (1 << 22) + 127;
  x = larger(Sixteen{} - 126, x);
  const Sixteen shifted = x + kMagic;
  const Sixteen f = x - (shifted - kMagic);
  Sixteen e = Sixteen{} + 0.001326472731f;
  e = e * f + 0.009671512991f;
  e = e * f + 0.055507335812f;
  e = e * f + 0.240222424269f;
  e = e * f + 0.693147003651f;
  e = e * f + 1;
  return e * (Sixteen)((SixteenInts)shifted << 23);
}

inline float largest_of(Sixteen x) {
  x = larger(x, __builtin_shuffle(x, SixteenInts{8, 9, 10, 11, 12, 13, 14, 15}));
  x = larger(x, __builtin_shuffle(x, SixteenInts{4, 5, 6, 7}));
  x = larger(x, __builtin_shuffle(x, SixteenInts{2, 3}));
  x = larger(x, __builtin_shuffle(x, SixteenInts{1}));
  return x[0];
}

inline float total_of(Sixteen x) {
  x += __builtin_shuffle(x, SixteenInts{8, 9, 10, 11, 12, 13, 14, 15});
  x += __builtin_shuffle(x, SixteenInts{4, 5, 6, 7});
  x += __builtin_shuffle(x, SixteenInts{2, 3});
  x += __builtin_shuffle(x, SixteenInts{1});
  return x[0];
}

// A larger score than all before: their weights become smaller.
inline void rescale(const AttentionBlock& b, int64 row, float largest) {
  const auto factor = power_of_2(Sixteen{} + (b.largest[row] - largest));
  auto* const sums = (Sixteen*)(b.sums + row * b.width);
  auto* const totals = (Sixteen*)(b.totals + row * 2 * kParts);
  for (int64 d = 0; d < b.width / kTile; ++d) sums[d] *= factor;
  for (int i = 0; i < 2; ++i) totals[i] *= factor;
  b.largest[row] = largest;
}

// Scores of a query become weights, two a word, from the beginning of their row.
void weigh_row(const AttentionBlock& b, int64 row, float* scores, int64 keys) {
  const auto whole = whole_panels(keys);
  for (auto n = keys; n < whole; ++n) scores[n] = -__builtin_inff();
  const auto* const from = (const Sixteen*)scores;
  auto* const to = (SixteenWords*)scores;
  Sixteen top = Sixteen{} - __builtin_inff();
  for (int64 i = 0; i < whole / kTile; ++i) top = larger(from[i], top);
  const float largest = largest_of(top) * b.scale;
  if (largest > b.largest[row]) rescale(b, row, largest);

  const Sixteen scale = Sixteen{} + b.scale, offset = Sixteen{} - b.largest[row];
  auto* const totals = (Sixteen*)(b.totals + row * 2 * kParts);
  Sixteen exact = totals[0], rounded = totals[1];
  for (int64 i = 0; i < whole / kPanel; ++i) {
    const Sixteen low = power_of_2(from[2 * i] * scale + offset);
    const Sixteen high = power_of_2(from[2 * i + 1] * scale + offset);
    const auto halves = to_halves(low, high);
    exact += low + high;
    rounded = plus_halves(rounded, halves);
    to[i] = halves;
  }
  totals[0] = exact;
  totals[1] = rounded;
}

void weigh(const AttentionBlock& b, const Part& part) {
  for (int64 m = 0; m < Kernels::kRows; ++m)
    weigh_row(b, part.row + m, b.scores + m * kStride, part.keys);
}

// ------------------------------------------------------------------------------------- whole

// Keys are in the second cache while all strips meet them.
void attend(const AttentionBlock& b) {
  Shapes before;  // not written here: the compiler does not know how much the intrinsic writes
  _tile_storeconfig(&before);
  write_memory();
  _tile_loadconfig(&kShapes);
  for (int64 key = 0; key < b.num_keys; key += Kernels::kKeys) {
    const auto rest = b.num_keys - key;
    const auto keys = rest < Kernels::kKeys ? rest : Kernels::kKeys;
    for (int64 row = 0; row < b.rows; row += Kernels::kRows) {
      const Part part{row, key, keys};
      multiply_by_keys(b, part);
      weigh(b, part);
      add_values(b, part);
    }
  }
  _tile_loadconfig(&before);  // LibTorch's, which it may keep, or none
}

// Divided by the sum of the rounded weights, which are those that the values were multiplied by:
// they add up to 1, and equal values come out as they are.
float finish(const float* sums, const float* totals, int64 width, uint16_t* out) {
  typedef SixteenWords Unaligned __attribute__((aligned(2)));
  const auto* const from = (const Sixteen*)sums;
  const auto* const both = (const Sixteen*)totals;
  const Sixteen inverse = Sixteen{} + 1 / total_of(both[1]);
  for (int64 i = 0; i < width / kPanel; ++i)
    *(Unaligned*)(out + i * kPanel) = to_halves(from[2 * i] * inverse, from[2 * i + 1] * inverse);
  return total_of(both[0]);
}

}  // namespace

// With the keys packed by `products`, which are of tiles.
AttentionKernels attention_by(const ProductKernels& products);
AttentionKernels attention_by(const ProductKernels& products) {
  return {.pack_keys = products.pack_halves,
          .pack_values = &pack_values,
          .attend = &attend,
          .finish = &finish};
}

}  // namespace braid::ops::BRAID_ISA
