// Which of the compiled loops this machine can run.
#include <algorithm>
#include <array>
#include <bit>

#include "base/cpu.h"
#include "ops/kernels/amx.h"
#include "ops/kernels/attention_kernels.h"
#include "ops/kernels/blocks.h"
#include "ops/kernels/codes.h"
#include "ops/kernels/products.h"
#include "ops/kernels/rows.h"
#include "ops/kernels/winograd.h"

namespace braid::ops {

namespace baseline {
extern const RowKernels kFloat32, kBfloat16;
extern const BlockKernels kBlocks;
extern const CodeKernels kCodesFloat32, kCodesBfloat16;
extern const ProductKernels kProducts;
extern const WinogradKernels kWinogradTwo, kWinogradFour;
extern const AttentionKernels kAttention;
}  // namespace baseline
namespace avx2 {
extern const RowKernels kFloat32, kBfloat16;
extern const BlockKernels kBlocks;
extern const CodeKernels kCodesFloat32, kCodesBfloat16;
extern const ProductKernels kProducts;
extern const WinogradKernels kWinogradTwo, kWinogradFour;
extern const AttentionKernels kAttention;
}  // namespace avx2
namespace avx512 {
extern const RowKernels kFloat32, kBfloat16;
extern const BlockKernels kBlocks;
extern const CodeKernels kCodesFloat32, kCodesBfloat16;
extern const ProductKernels kProducts;
extern const WinogradKernels kWinogradTwo, kWinogradFour;
extern const AttentionKernels kAttention;
}  // namespace avx512

namespace {

// Of loops on vectors: nothing that came after AVX-512 is in them.
Isa best_isa() {
  static const Isa isa = std::min(read_cpu().isa(), Isa::kAvx512);
  return isa;
}

template <class Kernels>
const Kernels& choose(const Kernels& baseline, const Kernels& avx2, const Kernels& avx512) {
  const auto isa = best_isa();
  return isa == Isa::kAvx512 ? avx512 : isa == Isa::kAvx2 ? avx2 : baseline;
}

// No picture depends on tiles that were not seen to multiply.
const ProductKernels* tiles() {
  static const ProductKernels* const tiles = [] {
    const auto* const k = amx_products(avx512::kProducts);
    return k && are_right(*k) ? k : nullptr;
  }();
  return tiles;
}

}  // namespace

const RowKernels& row_kernels(RowType type) {
  return type == RowType::kFloat32
             ? choose(baseline::kFloat32, avx2::kFloat32, avx512::kFloat32)
             : choose(baseline::kBfloat16, avx2::kBfloat16, avx512::kBfloat16);
}

const CodeKernels& code_kernels(RowType type) {
  return type == RowType::kFloat32
             ? choose(baseline::kCodesFloat32, avx2::kCodesFloat32, avx512::kCodesFloat32)
             : choose(baseline::kCodesBfloat16, avx2::kCodesBfloat16, avx512::kCodesBfloat16);
}

const BlockKernels& block_kernels() {
  return choose(baseline::kBlocks, avx2::kBlocks, avx512::kBlocks);
}

bool are_right(const ProductKernels& k) {
  constexpr int kMostRows = 40, kMostColumns = 32, kDepth = 64;
  const int rows = std::min(kMostRows, k.rows), words = kDepth / k.halves_per_word;
  const auto x_at = [](int m, int c) { return (5 * m + 3 * c) % 7 - 3; };
  const auto w_at = [](int n, int c) { return (2 * n + 7 * c) % 11 - 5; };
  const auto half_of = [](int i) {
    return std::uint16_t(std::bit_cast<std::uint32_t>(float(i)) >> 16);
  };
  std::uint16_t x[kMostRows][kDepth], w[kMostColumns][kDepth];
  for (int c = 0; c < kDepth; ++c) {
    for (int m = 0; m < rows; ++m) x[m][c] = half_of(x_at(m, c));
    for (int n = 0; n < k.columns; ++n) w[n][c] = half_of(w_at(n, c));
  }
  alignas(64) float taken[kMostRows][kDepth], panel[kDepth * kMostColumns];
  alignas(64) float sums[kMostRows][kMostColumns] = {};
  for (int m = 0; m < rows; ++m) k.take_halves(x[m], kDepth, taken[m]);
  k.pack_halves(w[0], kDepth, k.columns, kDepth, panel);
  k.multiply_halves(taken[0], kDepth, rows, panel, words, sums[0], kMostColumns);
  for (int m = 0; m < rows; ++m)
    for (int n = 0; n < k.columns; ++n) {
      int want = 0;
      for (int c = 0; c < kDepth; ++c) want += x_at(m, c) * w_at(n, c);
      if (sums[m][n] != float(want)) return false;
    }
  return true;
}

bool has_tiles() { return tiles() != nullptr; }

const ProductKernels& product_kernels() {
  return has_tiles() ? *tiles() : choose(baseline::kProducts, avx2::kProducts, avx512::kProducts);
}

NamedAttention runnable_attention(int number) {
  const std::array<NamedAttention, 4> all{
      {{"baseline", &baseline::kAttention},
       {"avx2", &avx2::kAttention},
       {"avx512", &avx512::kAttention},
       {"amx", has_tiles() ? amx_attention(avx512::kProducts) : nullptr}}};
  const int best = has_tiles() ? 3 : int(best_isa());
  return number <= best ? all[std::size_t(number)] : NamedAttention{};
}

const AttentionKernels* attention_kernels() {
  static const bool has_bfloat16 = read_cpu().has_bfloat16();
  if (has_tiles()) return runnable_attention(3).kernels;
  return has_bfloat16 ? nullptr : runnable_attention(int(best_isa())).kernels;
}

const WinogradKernels* runnable_winograd(int number, WinogradSize size) {
  const bool is_two = size == WinogradSize::kTwo;
  const std::array<const WinogradKernels*, 3> all{
      is_two ? &baseline::kWinogradTwo : &baseline::kWinogradFour,
      is_two ? &avx2::kWinogradTwo : &avx2::kWinogradFour,
      is_two ? &avx512::kWinogradTwo : &avx512::kWinogradFour};
  return number <= int(best_isa()) ? all[std::size_t(number)] : nullptr;
}

const WinogradKernels& winograd_kernels(WinogradSize size) {
  return *runnable_winograd(int(best_isa()), size);
}

NamedProducts runnable_products(int number) {
  const std::array<NamedProducts, 4> all{{{"baseline", &baseline::kProducts},
                                          {"avx2", &avx2::kProducts},
                                          {"avx512", &avx512::kProducts},
                                          {"amx", tiles()}}};
  const int best = has_tiles() ? 3 : int(best_isa());
  return number <= best ? all[std::size_t(number)] : NamedProducts{};
}

const char* name_of_best_products() {
  const char* name = "";
  for (int i = 0; runnable_products(i).kernels; ++i) name = runnable_products(i).name;
  return name;
}

}  // namespace braid::ops
