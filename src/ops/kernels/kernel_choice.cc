// Selects the compiled loops for this machine.
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
extern const WinogradKernels kWinogradTwo, kWinogradFour, kWinogradSix;
extern const AttentionKernels kAttention;
}  // namespace baseline
namespace avx2 {
extern const RowKernels kFloat32, kBfloat16;
extern const BlockKernels kBlocks;
extern const CodeKernels kCodesFloat32, kCodesBfloat16;
extern const ProductKernels kProducts;
extern const WinogradKernels kWinogradTwo, kWinogradFour, kWinogradSix;
extern const AttentionKernels kAttention;
}  // namespace avx2
namespace avx512 {
extern const RowKernels kFloat32, kBfloat16;
extern const BlockKernels kBlocks;
extern const CodeKernels kCodesFloat32, kCodesBfloat16;
extern const ProductKernels kProducts;
extern const WinogradKernels kWinogradTwo, kWinogradFour, kWinogradSix;
extern const AttentionKernels kAttention;
}  // namespace avx512
namespace avx512_rounding {
extern const RowKernels kBfloat16;
}  // namespace avx512_rounding

namespace {

// Vector loops use nothing newer than AVX-512.
Isa best_isa() {
  static const Isa isa = std::min(read_cpu().isa(), Isa::kAvx512);
  return isa;
}

template <class Kernels>
const Kernels& choose(const Kernels& baseline, const Kernels& avx2, const Kernels& avx512) {
  const auto isa = best_isa();
  return isa == Isa::kAvx512 ? avx512 : isa == Isa::kAvx2 ? avx2 : baseline;
}

// The sets stand in the order of Isa. Instructions are used only after they were seen to multiply
// correctly.
constexpr int kSets = 6;
const std::array<NamedProducts, kSets>& all_products() {
  static const auto all = [] {
    std::array<NamedProducts, kSets> sets{{{"baseline", &baseline::kProducts},
                                           {"avx2", &avx2::kProducts},
                                           {"avx512", &avx512::kProducts},
                                           {"avx512_vnni", vnni_products(avx512::kProducts)},
                                           {"avx512_bf16", bf16_products(avx512::kProducts)},
                                           {"amx", amx_products(avx512::kProducts)}}};
    for (int i = 0; i < kSets; ++i) {
      auto& kernels = sets[std::size_t(i)].kernels;
      const bool is_new = i > int(Isa::kAvx512);
      if (i > int(read_cpu().isa()) || (is_new && kernels && !are_right(*kernels)))
        kernels = nullptr;
    }
    return sets;
  }();
  return all;
}

const ProductKernels* products_of(Isa isa) { return all_products()[std::size_t(isa)].kernels; }

bool multiplies_pairs() { return products_of(Isa::kAvx512Bf16) && read_cpu().has_fast_pairs(); }

// The set with the fastest products: pairs are not fast on every processor that has them.
Isa best_products() {
  static const Isa best = [] {
    if (products_of(Isa::kAmx)) return Isa::kAmx;
    if (multiplies_pairs()) return Isa::kAvx512Bf16;
    return products_of(Isa::kAvx512Vnni) ? Isa::kAvx512Vnni : best_isa();
  }();
  return best;
}

}  // namespace

const RowKernels& row_kernels(RowType type) {
  if (type == RowType::kBfloat16 && read_cpu().isa() >= Isa::kAvx512Bf16)
    return avx512_rounding::kBfloat16;
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

namespace {

constexpr int kMostRows = 40, kMostColumns = 32, kDepth = 64;

int small_x(int m, int c) { return (5 * m + 3 * c) % 7 - 3; }
int small_w(int n, int c) { return (2 * n + 7 * c) % 11 - 5; }
int small_product(int m, int n) {
  int sum = 0;
  for (int c = 0; c < kDepth; ++c) sum += small_x(m, c) * small_w(n, c);
  return sum;
}

template <class Number>
struct SmallOperands {
  Number x[kMostRows][kDepth], w[kMostColumns][kDepth];

  template <class Convert>
  explicit SmallOperands(Convert number) {
    for (int c = 0; c < kDepth; ++c) {
      for (int m = 0; m < kMostRows; ++m) x[m][c] = number(small_x(m, c));
      for (int n = 0; n < kMostColumns; ++n) w[n][c] = number(small_w(n, c));
    }
  }
};

bool half_products_are_right(const ProductKernels& k, int rows) {
  const SmallOperands<std::uint16_t> of(
      [](int i) { return std::uint16_t(std::bit_cast<std::uint32_t>(float(i)) >> 16); });
  alignas(64) float taken[kMostRows][kDepth], panel[kDepth * kMostColumns];
  alignas(64) float sums[kMostRows][kMostColumns] = {};
  for (int m = 0; m < rows; ++m) k.pack_a(of.x[m], kDepth, taken[m]);
  k.pack_halves(of.w[0], kDepth, k.columns, kDepth, panel);
  k.multiply_halves(taken[0], kDepth, rows, panel, kDepth / k.halves_per_word, sums[0],
                    kMostColumns);
  for (int m = 0; m < rows; ++m)
    for (int n = 0; n < k.columns; ++n)
      if (sums[m][n] != float(small_product(m, n))) return false;
  return true;
}

bool code_products_are_right(const ProductKernels& k, int rows) {
  const SmallOperands<std::int8_t> of([](int i) { return std::int8_t(i); });
  alignas(64) std::int32_t taken[kMostRows][kDepth], panel[kDepth * kMostColumns];
  alignas(64) std::int32_t sums[kMostRows][kMostColumns] = {};
  for (int m = 0; m < rows; ++m) k.take_codes(of.x[m], kDepth, taken[m]);
  k.pack_codes(of.w[0], kDepth, k.columns, kDepth, panel);
  k.multiply_codes(taken[0], kDepth, rows, panel, kDepth / k.codes_per_word, sums[0], kMostColumns);
  for (int m = 0; m < rows; ++m) {
    int shifted = 0;
    for (int c = 0; c < kDepth; ++c) shifted += k.code_shift * small_x(m, c);
    for (int n = 0; n < k.columns; ++n)
      if (sums[m][n] != small_product(m, n) + shifted) return false;
  }
  return true;
}

}  // namespace

bool are_right(const ProductKernels& k) {
  const int rows = std::min(kMostRows, k.rows);
  return half_products_are_right(k, rows) && code_products_are_right(k, rows);
}

bool has_tiles() { return products_of(Isa::kAmx) != nullptr; }

const ProductKernels& product_kernels() { return *products_of(best_products()); }

NamedAttention runnable_attention(int number) {
  const bool has_pairs = products_of(Isa::kAvx512Bf16) != nullptr;
  const std::array<NamedAttention, 5> all{
      {{"baseline", &baseline::kAttention},
       {"avx2", &avx2::kAttention},
       {"avx512", &avx512::kAttention},
       {"avx512_bf16", has_pairs ? bf16_attention(avx512::kProducts) : nullptr},
       {"amx", has_tiles() ? amx_attention(avx512::kProducts) : nullptr}}};
  const bool is_new = number > int(Isa::kAvx512);
  if (number >= int(all.size()) || (!is_new && number > int(best_isa()))) return {};
  return all[std::size_t(number)];
}

const AttentionKernels* attention_kernels() {
  if (has_tiles()) return runnable_attention(4).kernels;
  if (multiplies_pairs()) return runnable_attention(3).kernels;
  return leads_in_bfloat16() ? runnable_attention(int(best_isa())).kernels : nullptr;
}

bool leads_in_bfloat16() {
  static const bool leads = best_products() > Isa::kBaseline || !read_cpu().has_bfloat16();
  return leads;
}

const WinogradKernels* runnable_winograd(int number, WinogradSize size) {
  // Rows are sizes, columns instruction sets.
  static constexpr const WinogradKernels* kAll[][3] = {
      {&baseline::kWinogradTwo, &avx2::kWinogradTwo, &avx512::kWinogradTwo},
      {&baseline::kWinogradFour, &avx2::kWinogradFour, &avx512::kWinogradFour},
      {&baseline::kWinogradSix, &avx2::kWinogradSix, &avx512::kWinogradSix}};
  return number <= int(best_isa()) ? kAll[int(size)][number] : nullptr;
}

const WinogradKernels& winograd_kernels(WinogradSize size) {
  return *runnable_winograd(int(best_isa()), size);
}

NamedProducts runnable_products(int number) {
  return number < kSets ? all_products()[std::size_t(number)] : NamedProducts{};
}

const char* name_of_best_products() { return isa_name(best_products()); }

}  // namespace braid::ops
