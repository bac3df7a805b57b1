// Compiled several times, for different instruction sets and into different namespaces (BRAID_ISA),
// with the vectors of that set; see rows.cc.
#include "ops/kernels/winograd.h"

#include <stdint.h>

#include "ops/kernels/vectors/panels.h"

#include BRAID_VECTORS

namespace braid::ops::BRAID_ISA {
namespace {

constexpr int kVectors = 2, kTiles = kVectors * kLanes;  // per panel row, as in register_tiles.h

// One dimension of F(m, 3): transforms a run of pixels, the sums at the points, and taps. The
// points are 0, 1, -1 and infinity; for m = 4 also 2 and -2; for m = 6 also 1/2 and -1/2.
struct Two {
  static constexpr int kOutput = 2, kPoints = 4;

  static void enter(const Eight (&d)[8], Eight (&v)[kPoints]) {
    v[0] = d[0] - d[2];
    v[1] = d[1] + d[2];
    v[2] = d[2] - d[1];
    v[3] = d[1] - d[3];
  }
  static void leave(const Eight (&s)[kPoints], Eight (&y)[kOutput]) {
    y[0] = s[0] + s[1] + s[2];
    y[1] = s[1] - s[2] - s[3];
  }
  static void enter_taps(float a, float b, float c, float (&u)[kPoints]) {
    u[0] = a;
    u[1] = (a + b + c) * 0.5f;
    u[2] = (a - b + c) * 0.5f;
    u[3] = c;
  }
};

struct Four {
  static constexpr int kOutput = 4, kPoints = 6;

  static void enter(const Eight (&d)[8], Eight (&v)[kPoints]) {
    const Eight even = d[4] - 4 * d[2], odd = d[3] - 4 * d[1];
    const Eight half_even = d[4] - d[2], half_odd = 2 * (d[3] - d[1]);
    v[0] = 4 * d[0] - 5 * d[2] + d[4];
    v[1] = even + odd;
    v[2] = even - odd;
    v[3] = half_even + half_odd;
    v[4] = half_even - half_odd;
    v[5] = 4 * d[1] - 5 * d[3] + d[5];
  }
  static void leave(const Eight (&s)[kPoints], Eight (&y)[kOutput]) {
    const Eight sum = s[1] + s[2], difference = s[1] - s[2];
    const Eight far_sum = s[3] + s[4], far_difference = s[3] - s[4];
    y[0] = s[0] + sum + far_sum;
    y[1] = difference + 2 * far_difference;
    y[2] = sum + 4 * far_sum;
    y[3] = difference + 8 * far_difference + s[5];
  }
  static void enter_taps(float a, float b, float c, float (&u)[kPoints]) {
    u[0] = a * 0.25f;
    u[1] = (a + b + c) * (-1 / 6.0f);
    u[2] = (a - b + c) * (-1 / 6.0f);
    u[3] = (a + 2 * b + 4 * c) * (1 / 24.0f);
    u[4] = (a - 2 * b + 4 * c) * (1 / 24.0f);
    u[5] = c;
  }
};

struct Six {
  static constexpr int kOutput = 6, kPoints = 8;

  static void enter(const Eight (&d)[8], Eight (&v)[kPoints]) {
    const Eight near_even = d[2] + d[6] - 4.25f * d[4], near_odd = d[1] + d[5] - 4.25f * d[3];
    const Eight far_even = d[6] + 0.25f * d[2] - 1.25f * d[4];
    const Eight far_odd = 0.5f * d[1] - 2.5f * d[3] + 2 * d[5];
    const Eight half_even = d[6] + 4 * d[2] - 5 * d[4];
    const Eight half_odd = 2 * d[1] - 2.5f * d[3] + 0.5f * d[5];
    v[0] = d[0] - d[6] + 5.25f * (d[4] - d[2]);
    v[1] = near_even + near_odd;
    v[2] = near_even - near_odd;
    v[3] = far_even + far_odd;
    v[4] = far_even - far_odd;
    v[5] = half_even + half_odd;
    v[6] = half_even - half_odd;
    v[7] = d[7] - d[1] + 5.25f * (d[3] - d[5]);
  }
  static void leave(const Eight (&s)[kPoints], Eight (&y)[kOutput]) {
    const Eight sum = s[1] + s[2], difference = s[1] - s[2];
    const Eight far_sum = s[3] + s[4], far_difference = s[3] - s[4];
    const Eight half_sum = s[5] + s[6], half_difference = s[5] - s[6];
    y[0] = s[0] + sum + far_sum + 32 * half_sum;
    y[1] = difference + 2 * far_difference + 16 * half_difference;
    y[2] = sum + 4 * far_sum + 8 * half_sum;
    y[3] = difference + 8 * far_difference + 4 * half_difference;
    y[4] = sum + 16 * far_sum + 2 * half_sum;
    y[5] = difference + 32 * far_difference + half_difference + s[7];
  }
  static void enter_taps(float a, float b, float c, float (&u)[kPoints]) {
    u[0] = a;
    u[1] = (a + b + c) * (-2 / 9.0f);
    u[2] = (a - b + c) * (-2 / 9.0f);
    u[3] = (a + 2 * b + 4 * c) * (1 / 90.0f);
    u[4] = (a - 2 * b + 4 * c) * (1 / 90.0f);
    u[5] = (4 * a + 2 * b + c) * (1 / 180.0f);
    u[6] = (4 * a - 2 * b + c) * (1 / 180.0f);
    u[7] = c;
  }
};

// Columns first, then rows, for eight tiles at a time.
template <class F>
void enter(const float* x, int64 row_stride, const int64* offsets, float* points) {
  constexpr int kPoints = F::kPoints;
  for (int first = 0; first < kTiles; first += 8) {
    Eight across[kPoints][kPoints];
    for (int i = 0; i < kPoints; ++i) {
      Eight tiles[8], pixels[8];
#pragma GCC unroll 8
      for (int t = 0; t < 8; ++t)
        tiles[t] = *(const Eight*)(x + offsets[first + t] + i * row_stride);
      store_transposed(tiles, (float*)pixels, 8);
      F::enter(pixels, across[i]);
    }
#pragma GCC unroll 6
    for (int j = 0; j < kPoints; ++j) {
      Eight column[8] = {}, down[kPoints];
      for (int i = 0; i < kPoints; ++i) column[i] = across[i][j];
      F::enter(column, down);
      for (int i = 0; i < kPoints; ++i)
        *(Eight*)(points + (i * kPoints + j) * kTiles + first) = down[i];
    }
  }
}

// Stores the pixels of eight adjacent tiles, tile by tile.
inline void store_row(const Eight (&y)[4], float* to) {
  const Eight a = low_pairs(y[0], y[1]), b = low_pairs(y[2], y[3]);
  const Eight c = high_pairs(y[0], y[1]), d = high_pairs(y[2], y[3]);
  const Eight t04 = low_fours(a, b), t15 = high_fours(a, b);
  const Eight t26 = low_fours(c, d), t37 = high_fours(c, d);
  *(Eight*)to = low_halves(t04, t15);
  *(Eight*)(to + 8) = low_halves(t26, t37);
  *(Eight*)(to + 16) = high_halves(t04, t15);
  *(Eight*)(to + 24) = high_halves(t26, t37);
}
inline void store_row(const Eight (&y)[2], float* to) {
  const Eight low = low_pairs(y[0], y[1]), high = high_pairs(y[0], y[1]);
  *(Eight*)to = low_halves(low, high);
  *(Eight*)(to + 8) = high_halves(low, high);
}

// A tile's store also covers two pixels of the next tile, which then stores its own there.
inline void store_row(const Eight (&y)[6], float* to) {
  const Eight rows[8] = {y[0], y[1], y[2], y[3], y[4], y[5]};
  Eight tiles[8];
  store_transposed(rows, (float*)tiles, 8);
#pragma GCC unroll 7
  for (int t = 0; t < 7; ++t) *(Eight*)(to + 6 * t) = tiles[t];
  __builtin_memcpy(to + 6 * 7, &tiles[7], 6 * sizeof(float));
}

template <class F>
void leave(const float* points, float* pixels) {
  constexpr int kPoints = F::kPoints, kOutput = F::kOutput;
  for (int first = 0; first < kTiles; first += 8) {
    Eight down[kPoints][kOutput];
#pragma GCC unroll 8
    for (int j = 0; j < kPoints; ++j) {
      Eight column[kPoints];
      for (int i = 0; i < kPoints; ++i)
        column[i] = *(const Eight*)(points + (i * kPoints + j) * kTiles + first);
      F::leave(column, down[j]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kOutput; ++i) {
      Eight row[kPoints], y[kOutput];
      for (int j = 0; j < kPoints; ++j) row[j] = down[j][i];
      F::leave(row, y);
      store_row(y, pixels + (i * kTiles + first) * kOutput);
    }
  }
}

template <class F>
void enter_taps(const float* const* taps, int64 count, float* points, int64 point_stride) {
  constexpr int kPoints = F::kPoints;
#pragma omp simd
  for (int64 n = 0; n < count; ++n) {
    float across[3][kPoints];
    for (int r = 0; r < 3; ++r)
      F::enter_taps(taps[3 * r][n], taps[3 * r + 1][n], taps[3 * r + 2][n], across[r]);
    for (int j = 0; j < kPoints; ++j) {
      float down[kPoints];
      F::enter_taps(across[0][j], across[1][j], across[2][j], down);
      for (int i = 0; i < kPoints; ++i) points[(i * kPoints + j) * point_stride + n] = down[i];
    }
  }
}

// All sums stay in registers.
template <int kRows>
void multiply(const float* taps, int64 rows, const float* entered, int64 entered_stride,
              int64 depth, float* sums, int64 sums_stride) {
  if constexpr (kRows > 1)
    if (rows < kRows)
      return multiply<kRows - 1>(taps, rows, entered, entered_stride, depth, sums, sums_stride);
  Floats sum[kRows][kVectors] = {};
  for (int64 c = 0; c < depth; ++c) {
    const auto* const tiles = (const Floats*)(entered + c * entered_stride);
    __builtin_prefetch(taps + (depth + c) * kRows);  // of the next outputs
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[m][v] += taps[c * kRows + m] * tiles[v];
  }
#pragma GCC unroll 16
  for (int m = 0; m < kRows; ++m)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) *(Floats*)(sums + m * sums_stride + v * kLanes) = sum[m][v];
}

template <class F>
constexpr WinogradKernels kOf = {
    .output = F::kOutput,
    .points = F::kPoints* F::kPoints,
    .tiles = kTiles,
    .rows = kTileRows,
    .enter = &enter<F>,
    .multiply = &multiply<kTileRows>,
    .leave = &leave<F>,
    .enter_taps = &enter_taps<F>,
};

}  // namespace

extern const WinogradKernels kWinogradTwo, kWinogradFour, kWinogradSix;
const WinogradKernels kWinogradTwo = kOf<Two>, kWinogradFour = kOf<Four>, kWinogradSix = kOf<Six>;

}  // namespace braid::ops::BRAID_ISA
