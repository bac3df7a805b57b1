// Compiled for Intel AMX and, for tests, for any machine with tiles emulated by loops
// (BRAID_VECTORS); rows.cc says why nothing else is here.
#include "ops/kernels/vectors/words.h"

#include BRAID_VECTORS

namespace braid::ops::BRAID_ISA {
namespace {

// A strip of 32 rows of x times a panel of 32 columns.
constexpr int kStripRows = 2 * kTile, kColumns = 2 * kTile;
constexpr int kBlockRows = 8 * kStripRows;
// A panel of 32 KiB fits in the L1 cache of 48 KiB; strips and sums come from L2. Strips are read
// with loads that leave L1 to the panel; other loads would evict it.
constexpr int kDepth = 256;
static_assert(ProductKernels::kRun == kTile);

void pack_fours(const int8_t* row, int64 stride, int64 count, int64 depth, int32_t* panel) {
  pack_words<kColumns, 4>(
      [&](int64 r) {
        return FoursOfCodes{row + r * stride, depth};
      },
      count, depth, reinterpret_cast<float*>(panel));
}

void take_scaled_codes(const int8_t* row, float scale, int64 depth, float* words) {
  const auto numbers = [&](int64 c) {
    // in steps, because GCC 12 converts one by one when numbers become four times as wide
    const auto codes = __builtin_convertvector(*(const SixteenCodes*)(row + c), SixteenShorts);
    return __builtin_convertvector(__builtin_convertvector(codes, SixteenInts), Sixteen) * scale;
  };
  int64 c = 0;
  for (; c + 2 * kTile <= depth; c += 2 * kTile)
    *(SixteenWords*)(words + c / 2) = to_halves(numbers(c), numbers(c + kTile));
  take_words<2>(PairsOfScaledCodes{row + c, depth - c, scale}, words + c / 2);
}

void turn(const void* sums, int64 stride, int64 rows, void* out, int64 out_stride) {
  const auto* const from = static_cast<const float*>(sums);
  auto* const to = static_cast<float*>(out);
  for (int64 row = 0; row < rows; row += 8)
    for (int64 column = 0; column < ProductKernels::kTurned; column += 8) {
      Eight eight[8];
      for (int64 i = 0; i < 8; ++i) eight[i] = *(const Eight*)(from + (row + i) * stride + column);
      store_transposed(eight, to + column * out_stride + row, out_stride);
    }
}

// ---------------------------------------------------------------------------------- products

// Static, as the compiler does not know what the intrinsic reads and might not write it.
struct AllShapes {
  Shapes of_rows[kStripRows + 1];
};
constexpr AllShapes kAllShapes = [] {
  AllShapes all{};
  for (int rows = 1; rows <= kStripRows; ++rows) all.of_rows[rows] = shapes_of(rows);
  return all;
}();

// Rows of x and of the sums: a strip of 32, or the remaining rows. Strides in words.
template <class Number>
struct Strip {
  const Number* x;
  Number* sums;
  int64 x_stride, sums_stride, depth, row;
};

// A packed panel: for each word, all columns. Meanwhile each strip prefetches part of the next
// panel, which follows in memory, into the L2 cache.
template <class Number>
struct PackedPanel {
  const Number* words;
  int64 depth;

  const Number* at(int64 c) const { return words + c * kColumns; }
  int64 stride() const { return kColumns; }
  void go_on(int64 row, int64 c) const {
    constexpr int kLines = kStripRows * kColumns / kBlockRows * int(sizeof(Number)) * kTile / 64;
    const auto* const next = at(depth) + (row * depth + c * kStripRows) * kColumns / kBlockRows;
#pragma GCC unroll 8
    for (int i = 0; i < kLines; ++i) __builtin_prefetch(next + i * kTile, 0, 2);
  }
};

// A panel whose words lie in separate runs.
template <class Number>
struct GatheredPanel {
  const Number* words;
  const int64* runs;
  int64 word_stride;

  const Number* at(int64 c) const { return words + runs[c / kTile]; }
  int64 stride() const { return word_stride; }
  void go_on(int64, int64) const {}
};

// The next strip's sums, a part at each step: all are loaded at once, and would be awaited.
template <class Number>
inline void fetch_sums(const Number* sums, int64 stride, int64 c) {
  const auto* const row = sums + c / kTile % (kStripRows / 2) * 2 * stride;
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    __builtin_prefetch(row + i * stride, 1);
    __builtin_prefetch(row + i * stride + kTile, 1);
  }
}

// The intrinsics are macros taking literal tile numbers; some compilers' lack parentheses.
#define BRAID_ADD_PRODUCT(sum, x, panel) \
  if constexpr (kIsFloat)                \
    _tile_dpbf16ps(sum, x, panel);       \
  else                                   \
    _tile_dpbssd(sum, x, panel)

template <bool kIsFloat, bool kHasLower, class Number, class Panel>
void multiply_strip(const Strip<Number>& s, const Panel& panel) {
  constexpr int64 kBytes = sizeof(Number);
  const auto x_bytes = s.x_stride * kBytes, sums_bytes = s.sums_stride * kBytes,
             panel_bytes = panel.stride() * kBytes;
  auto *const left = s.sums, *const right = left + kTile;
  auto *const low_left = left + kTile * s.sums_stride, *const low_right = low_left + kTile;
  _tile_loadd(0, left, sums_bytes);
  _tile_loadd(1, right, sums_bytes);
  if constexpr (kHasLower) {
    _tile_loadd(2, low_left, sums_bytes);
    _tile_loadd(3, low_right, sums_bytes);
  }
  for (int64 c = 0; c < s.depth; c += kTile) {
    const auto *const x = s.x + c, *const low_x = x + kTile * s.x_stride;
    const auto *const left_words = panel.at(c), *const right_words = left_words + kTile;
    _tile_stream_loadd(4, x, x_bytes);
    _tile_loadd(6, left_words, panel_bytes);
    BRAID_ADD_PRODUCT(0, 4, 6);
    _tile_loadd(7, right_words, panel_bytes);
    BRAID_ADD_PRODUCT(1, 4, 7);
    if constexpr (kHasLower) {
      _tile_stream_loadd(5, low_x, x_bytes);
      BRAID_ADD_PRODUCT(2, 5, 6);
      BRAID_ADD_PRODUCT(3, 5, 7);
    }
    panel.go_on(s.row, c);
    fetch_sums(s.sums + kStripRows * s.sums_stride, s.sums_stride, c);
  }
  _tile_stored(0, left, sums_bytes);
  _tile_stored(1, right, sums_bytes);
  if constexpr (kHasLower) {
    _tile_stored(2, low_left, sums_bytes);
    _tile_stored(3, low_right, sums_bytes);
  }
}
#undef BRAID_ADD_PRODUCT

// `all` covers all `rows`.
template <bool kIsFloat, class Number, class Panel>
void multiply_strips(const Strip<Number>& all, int64 rows, const Panel& panel) {
  Shapes before;  // the intrinsic writes more of it than it declares
  _tile_storeconfig(&before);
  __asm__ volatile("" ::: "memory");  // nor what tile loads read
  _tile_loadconfig(&kAllShapes.of_rows[kStripRows]);
  auto strip = all;
  const auto go_to = [&](int64 row) {
    strip.row = row;
    strip.x = all.x + row * all.x_stride;
    strip.sums = all.sums + row * all.sums_stride;
  };
  const auto whole = rows / kStripRows * kStripRows;
  for (int64 m = 0; m < whole; m += kStripRows) {
    go_to(m);
    multiply_strip<kIsFloat, true>(strip, panel);
  }
  if (const auto rest = rows - whole; rest > 0) {
    _tile_loadconfig(&kAllShapes.of_rows[rest]);
    go_to(whole);
    if (rest > kTile)
      multiply_strip<kIsFloat, true>(strip, panel);
    else
      multiply_strip<kIsFloat, false>(strip, panel);
  }
  _tile_loadconfig(&before);  // LibTorch's, which may rely on it, or none
}

template <bool kIsFloat, class Number>
void multiply(const Number* x, int64 x_stride, int64 rows, const Number* panel, int64 depth,
              Number* sums, int64 sums_stride) {
  multiply_strips<kIsFloat>(Strip<Number>{x, sums, x_stride, sums_stride, depth, 0}, rows,
                            PackedPanel<Number>{panel, depth});
}

void multiply_gathered(const float* x, int64 x_stride, int64 rows, const GatheredWords& words,
                       int64 depth, float* sums, int64 sums_stride) {
  multiply_strips<true>(Strip<float>{x, sums, x_stride, sums_stride, depth, 0}, rows,
                        GatheredPanel<float>{words.words, words.runs, words.stride});
}

}  // namespace

// `vectors` with tile products; few tokens still use vectors.
ProductKernels with_tiles(const ProductKernels& vectors);
ProductKernels with_tiles(const ProductKernels& vectors) {
  auto kernels = vectors;
  kernels.columns = kColumns;
  kernels.rows = kernels.block_rows = kBlockRows;
  kernels.depth = kDepth;
  kernels.halves_per_word = 2;
  kernels.codes_per_word = 4;
  kernels.code_shift = 0;
  kernels.pack_halves = &pack_pairs<kColumns>;
  kernels.pack_scaled_codes = &pack_scaled_pairs<kColumns>;
  kernels.pack_codes = &pack_fours;
  kernels.pack_a = &take_pairs;
  kernels.take_codes = &take_fours;
  kernels.multiply_halves = &multiply<true, float>;
  kernels.multiply_codes = &multiply<false, int32_t>;
  kernels.take_scaled_codes = &take_scaled_codes;
  kernels.turn = &turn;
  kernels.multiply_gathered = &multiply_gathered;
  return kernels;
}

}  // namespace braid::ops::BRAID_ISA
