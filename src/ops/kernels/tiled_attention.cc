// Flash attention by tiles (Dao et al., 2022), whose products are interleaved with its softmax
// (Shah et al., 2024). Compiled like tiles.cc: for Intel AMX and, for tests, for any machine with
// tiles emulated by loops (BRAID_VECTORS).
#include BRAID_VECTORS

#include "ops/kernels/vectors/pair_weights.h"

namespace braid::ops::BRAID_ISA {
namespace {

constexpr int kRows = 2 * kTile;  // per strip
// Keys a strip processes at once: two sets of scores nearly fit in the L1 cache, and sums of values
// are loaded and stored less often than with fewer keys.
constexpr int kKeys = 6 * kPanel, kStride = stride_of(kKeys);

// Static, as the compiler does not know what the intrinsic reads.
constexpr Shapes kShapes = shapes_of(kRows);

// ----------------------------------------------------------------------------------- softmax

// The compiler does not know what tile loads read, and might not have written it yet.
inline void write_memory() { __asm__ volatile("" ::: "memory"); }

// The softmax of a part, advanced a little with each tile step. A tile step multiplies for 64
// cycles, during which an out-of-order core's vector units are free.
class Softmax {
 public:
  Softmax(const AttentionBlock& b, const Part& part)
      : b_(b), part_(part), steps_(2 * (b.width / kPanel) * (whole_panels(part.keys) / kPanel)) {}

  void go_on() {
    for (due_ += kRows; due_ >= steps_; due_ -= steps_) next();
  }
  void finish() {
    while (row_ < kRows) next();
  }

 private:
  void next() {
    if (row_ >= kRows) return;
    weigh_row(b_, part_, row_++);
    write_memory();
  }

  const AttentionBlock& b_;
  const Part& part_;
  int64 steps_;  // tile steps of the parts before and after this one, roughly
  int64 due_ = 0, row_ = 0;
};

// ---------------------------------------------------------------------------------- products

// sums += a strip of x, rows `stride` words apart, times a panel; both are `depth` words deep.
inline void add_products(const float* x, int64 stride, const float* panel, int64 depth,
                         Softmax* meanwhile) {
  const auto bytes = stride * int64(sizeof(float));
  constexpr auto kPanelBytes = kPanel * int64(sizeof(float));
  for (int64 c = 0; c < depth; c += kTile) {
    const auto *const high = x + c, *const low = high + kTile * stride;
    const auto *const left = panel + c * kPanel, *const right = left + kTile;
    _tile_loadd(4, high, bytes);
    _tile_loadd(6, left, kPanelBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, right, kPanelBytes);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, low, bytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    if (meanwhile) meanwhile->go_on();
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
  const auto *const right = from + kTile, *const low = from + kTile * stride,
                    *const low_right = low + kTile;
  _tile_loadd(0, from, bytes);
  _tile_loadd(1, right, bytes);
  _tile_loadd(2, low, bytes);
  _tile_loadd(3, low_right, bytes);
}

inline void store_sums(float* to, int64 stride) {
  const auto bytes = stride * int64(sizeof(float));
  auto *const right = to + kTile, *const low = to + kTile * stride, *const low_right = low + kTile;
  _tile_stored(0, to, bytes);
  _tile_stored(1, right, bytes);
  _tile_stored(2, low, bytes);
  _tile_stored(3, low_right, bytes);
}

// scores = Q K^T
void multiply_by_keys(const AttentionBlock& b, const Part& part, Softmax* meanwhile) {
  const auto depth = b.width / 2;
  const auto* const queries = b.queries + part.row * depth;
  write_memory();
  for (int64 n = 0; n < part.keys; n += kPanel) {
    clear_sums();
    add_products(queries, depth, b.keys + (part.key + n) * depth, depth, meanwhile);
    store_sums(part.scores + n, kStride);
  }
}

// sums = sums factor + P V, where P is complete. For the first keys there are no sums yet.
void add_values(const AttentionBlock& b, const Part& part, Softmax* meanwhile) {
  if (part.key > 0) rescale(b, part, kRows);
  write_memory();
  for (int64 d = 0; d < b.width; d += kPanel) {
    const auto* const panel = b.values + (d * whole_panels(b.num_keys) + part.key * kPanel) / 2;
    auto* const sums = b.sums + part.row * b.width + d;
    if (part.key > 0)
      load_sums(sums, b.width);
    else
      clear_sums();
    add_products(part.scores, kStride, panel, whole_panels(part.keys) / 2, meanwhile);
    store_sums(sums, b.width);
  }
}

// ------------------------------------------------------------------------------------- whole

// Scores of two consecutive parts, and factors of the part whose values are added next.
struct alignas(64) Scratch {
  float scores[2][kRows * kStride], factors[kRows];
};

// Numbers the parts so that all strips process a block of keys while it is in the L2 cache.
Part part_at(const AttentionBlock& b, int64 number, Scratch& scratch) {
  const auto strips = b.rows / kRows;
  const auto key = number / strips * kKeys, rest = seen_by(b, b.rows - 1) - key;
  return {.row = number % strips * kRows,
          .key = key,
          .keys = rest < kKeys ? rest : kKeys,
          .scores = scratch.scores[number % 2],
          .stride = kStride,
          .factors = scratch.factors};
}

void attend(const AttentionBlock& b) {
  Scratch scratch;
  Shapes before;  // not initialised: the compiler does not know how much the intrinsic writes
  _tile_storeconfig(&before);
  const auto parts = b.rows / kRows * ((seen_by(b, b.rows - 1) + kKeys - 1) / kKeys);
  write_memory();
  _tile_loadconfig(&kShapes);
  auto next = part_at(b, 0, scratch);
  multiply_by_keys(b, next, nullptr);
  for (int64 i = 0; i < parts; ++i) {
    const auto part = next;
    Softmax softmax(b, part);
    if (i > 0) add_values(b, part_at(b, i - 1, scratch), &softmax);
    if (i + 1 < parts) {
      next = part_at(b, i + 1, scratch);
      multiply_by_keys(b, next, &softmax);
    }
    softmax.finish();
  }
  add_values(b, next, nullptr);
  _tile_loadconfig(&before);  // LibTorch's, which may rely on it, or none
}

}  // namespace

// `products` must be those of tiles, and outlive the result.
AttentionKernels attention_by(const ProductKernels& products);
AttentionKernels attention_by(const ProductKernels& products) {
  return {.rows = kRows,
          .products = &products,
          .pack_values = &pack_values,
          .attend = &attend,
          .finish = &finish};
}

}  // namespace braid::ops::BRAID_ISA
