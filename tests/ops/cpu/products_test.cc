// Our own products against float64, for every instruction set this machine has, and whole layers at
// sizes near those of the blocks.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "all_products.h"
#include "ops/cpu/blocked_product.h"
#include "ops/cpu/linear.h"
#include "ops/kernels/amx.h"
#include "ops/kernels/products.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "use_threads.h"
#include "weights/codes/int8.h"

namespace braid::products_test {

Tensor draw(at::IntArrayRef shape, at::ScalarType dtype, std::uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  return at::randn(shape, generator, at::kFloat).to(dtype);
}

double difference(const Tensor& got, const Tensor& want) {
  const auto largest = want.to(at::kDouble).abs().max().clamp_min(1e-30);
  return ((got.to(at::kDouble) - want).abs().max() / largest).item<double>();
}

// Memory for panels and sums: LibTorch aligns it to 64 bytes.
Tensor aligned(std::int64_t count, at::ScalarType dtype) { return at::zeros({count}, dtype); }

class Panels : public testing::TestWithParam<ops::NamedProducts> {
 protected:
  const ops::ProductKernels& k() const { return *GetParam().kernels; }
  std::vector<std::int64_t> some_rows() const {
    std::vector<std::int64_t> rows;
    for (std::int64_t m = 1; m <= std::min(k().rows, 33); ++m) rows.push_back(m);
    if (k().rows > 33) rows.insert(rows.end(), {k().rows - 17, k().rows - 15, k().rows});
    return rows;
  }
  // The words of a run of numbers, including padding.
  std::int64_t words_of(std::int64_t depth, int a_word) const {
    constexpr int kRun = ops::ProductKernels::kRun;
    return ((depth + a_word - 1) / a_word + kRun - 1) / kRun * kRun;
  }
};

TEST_P(Panels, OfHalvesGiveTheirProduct) {
  for (const std::int64_t depth : {1, 7, 8, 31, 33, 256})
    for (const auto rows : some_rows())
      for (const std::int64_t columns : {1, 7, 8, k().columns - 1, k().columns}) {
        const auto x = draw({rows, depth}, at::kBFloat16, 1);
        const auto w = draw({columns, depth}, at::kBFloat16, 2);
        const auto words = words_of(depth, k().halves_per_word);
        const auto taken = aligned(rows * words, at::kFloat).fill_(NAN);
        for (std::int64_t m = 0; m < rows; ++m)
          k().pack_a(static_cast<const std::uint16_t*>(x.const_data_ptr()) + m * depth, depth,
                     taken.mutable_data_ptr<float>() + m * words);
        const auto panel = aligned(words * k().columns, at::kFloat).fill_(NAN);
        k().pack_halves(static_cast<const std::uint16_t*>(w.const_data_ptr()), depth, columns,
                        depth, panel.mutable_data_ptr<float>());
        const auto sums = aligned(rows * k().columns, at::kFloat);
        const auto* const from = taken.const_data_ptr<float>();
        const auto* const by = panel.const_data_ptr<float>();
        const auto length = (depth + k().halves_per_word - 1) / k().halves_per_word;
        k().multiply_halves(from, words, rows, by, length, sums.mutable_data_ptr<float>(),
                            k().columns);
        const auto got = sums.view({rows, k().columns});
        const auto want = x.to(at::kDouble).matmul(w.to(at::kDouble).t());
        EXPECT_LT(difference(got.narrow(1, 0, columns), want), 2e-6);
        EXPECT_EQ(got.narrow(1, columns, k().columns - columns).abs().sum().item<float>(), 0);
        // once more: products are added to the sums
        k().multiply_halves(from, words, rows, by, length, sums.mutable_data_ptr<float>(),
                            k().columns);
        EXPECT_LT(difference(got.narrow(1, 0, columns), 2 * want), 2e-6);
      }
}

TEST_P(Panels, OfCodesGiveTheirExactProduct) {
  for (const std::int64_t depth : {1, 2, 15, 16, 17, 63, 65, 511})
    for (const auto rows : some_rows())
      for (const std::int64_t columns : {1, 8, k().columns}) {
        auto generator = at::detail::createCPUGenerator(3);
        const auto x = at::randint(-128, 128, {rows, depth}, generator, at::kChar);
        const auto w = at::randint(-128, 128, {columns, depth}, generator, at::kChar);
        const auto words = words_of(depth, k().codes_per_word);
        const auto panel = aligned(words * k().columns, at::kInt).fill_(-1);
        const auto taken = aligned(rows * words, at::kInt).fill_(-1),
                   sums = aligned(rows * k().columns, at::kInt);
        for (std::int64_t m = 0; m < rows; ++m)
          k().take_codes(x.const_data_ptr<std::int8_t>() + m * depth, depth,
                         taken.mutable_data_ptr<std::int32_t>() + m * words);
        k().pack_codes(w.const_data_ptr<std::int8_t>(), depth, columns, depth,
                       panel.mutable_data_ptr<std::int32_t>());
        k().multiply_codes(taken.const_data_ptr<std::int32_t>(), words, rows,
                           panel.const_data_ptr<std::int32_t>(),
                           (depth + k().codes_per_word - 1) / k().codes_per_word,
                           sums.mutable_data_ptr<std::int32_t>(), k().columns);
        const auto want = x.to(at::kLong).matmul((w.to(at::kLong) + k().code_shift).t());
        const auto got = sums.view({rows, k().columns}).narrow(1, 0, columns).to(at::kLong);
        EXPECT_TRUE(at::equal(got, want)) << depth << " " << rows << " " << columns;
      }
}

TEST_P(Panels, AreSeenToBeRightOrWrong) {
  EXPECT_TRUE(ops::are_right(k()));
  auto wrong = k();
  wrong.pack_a = [](const std::uint16_t*, std::int64_t, float* words) { words[0] = 1; };
  EXPECT_FALSE(ops::are_right(wrong));
  wrong = k();
  wrong.code_shift = 1;
  EXPECT_FALSE(ops::are_right(wrong));
}

TEST_P(Panels, RoundSumsToTheNearest) {
  const auto exact = at::cat({draw({1000}, at::kFloat, 4), at::tensor({INFINITY, -INFINITY, NAN}),
                              at::tensor({3.3895314e38f, 1 + 1 / 256.0f, 1 + 3 / 256.0f})});
  const auto got = at::empty({exact.size(0)}, at::kBFloat16);
  k().narrow(exact.const_data_ptr<float>(), exact.size(0),
             static_cast<std::uint16_t*>(got.mutable_data_ptr()));
  EXPECT_TRUE(at::allclose(got, exact.to(at::kBFloat16), 0, 0, /*equal_nan=*/true));
}

INSTANTIATE_TEST_SUITE_P(Instructions, Panels, testing::ValuesIn(all_products()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Tiles, OfTheProcessorAreRight) {
  const auto* const vectors = ops::runnable_products(2).kernels;
  const auto* const tiles = vectors ? ops::amx_products(*vectors) : nullptr;
  if (!tiles) GTEST_SKIP() << "this machine has no tiles";
  EXPECT_TRUE(ops::are_right(*tiles));
}

struct LayerCase {
  std::int64_t tokens, inputs, outputs;
};
class OwnLayers : public testing::TestWithParam<LayerCase> {};

// One rounding to bfloat16: half a unit in the last place of values near the largest.
constexpr double kUnit = 1.0 / 256;

TEST_P(OwnLayers, EqualFloat64) {
  const auto [tokens, inputs, outputs] = GetParam();
  const auto x = draw({tokens, inputs}, at::kBFloat16, 5);
  const Matrix dense{.values_NC = draw({outputs, inputs}, at::kBFloat16, 6)};
  const auto bias = draw({outputs}, at::kBFloat16, 7);
  const auto sum = x.to(at::kDouble).matmul(dense.values_NC.to(at::kDouble).t());
  const auto biased = sum + bias.to(at::kDouble);
  for (const auto& [name, kernels] : all_products()) {
    using ops::cpu::Finish, ops::cpu::linear;
    EXPECT_LT(difference(linear(x, dense, {}, Finish::kPlain, kernels), sum), kUnit) << name;
    EXPECT_LT(difference(linear(x, dense, bias, Finish::kPlain, kernels), biased), kUnit) << name;
    EXPECT_LT(difference(linear(x, dense, bias, Finish::kGelu, kernels), at::gelu(biased, "tanh")),
              kUnit)
        << name;
  }
}

TEST_P(OwnLayers, OfCodesEqualTheirDefinition) {
  const auto [tokens, inputs, outputs] = GetParam();
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const auto form : {Quantize::kInt8, Quantize::kInt8V1, Quantize::kInt8Dynamic}) {
      const auto x = draw({tokens, inputs}, dtype, 8), bias = draw({outputs}, dtype, 9);
      const auto w = quantize_rows(draw({outputs, inputs}, dtype, 10), form);
      if (dtype == at::kFloat && form != Quantize::kInt8Dynamic) {
        EXPECT_ANY_THROW(ops::cpu::linear(x, w, bias));
        continue;
      }
      const auto exact = x.to(at::kDouble).matmul(dequantize(w, dtype).to(at::kDouble).t());
      for (const auto& [name, kernels] : all_products()) {
        const auto got = ops::cpu::linear(x, w, bias, ops::cpu::Finish::kPlain, kernels);
        if (form == Quantize::kInt8Dynamic)
          EXPECT_TRUE(at::equal(got, ops::reference::linear(x, w, bias))) << name;
        else
          EXPECT_LT(difference(got, exact + bias.to(at::kDouble)), kUnit) << name;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Sizes, OwnLayers,
                         testing::Values(LayerCase{1, 1, 1}, LayerCase{1, 16, 7},
                                         LayerCase{4, 33, 65}, LayerCase{5, 8, 16},
                                         LayerCase{6, 255, 15}, LayerCase{7, 257, 17},
                                         LayerCase{97, 300, 33}, LayerCase{192, 64, 513},
                                         LayerCase{3, 513, 130}, LayerCase{1539, 40, 48},
                                         LayerCase{11, 1030, 1100}, LayerCase{40, 3300, 70},
                                         LayerCase{300, 4096, 40}, LayerCase{2400, 33, 20}));

TEST(OwnLayers, TakeViewsOfAnyStrides) {
  const auto w = Matrix{.values_NC = draw({40, 24}, at::kBFloat16, 11).narrow(1, 3, 17)};
  const auto x = draw({2, 60, 9}, at::kBFloat16, 12).narrow(1, 4, 51).unflatten(1, {3, 17});
  const auto turned = x.transpose(2, 3);  // [2 3 9 17], the last dim strided
  const auto got = ops::cpu::linear(turned, w, {});
  EXPECT_EQ(got.sizes(), (std::vector<std::int64_t>{2, 3, 9, 40}));
  EXPECT_LT(difference(got, turned.to(at::kDouble).matmul(w.values_NC.to(at::kDouble).t())),
            1.0 / 256);
}

TEST(OwnLayers, TakeWeightsThatAreTurned) {
  const auto x = draw({70, 16}, at::kBFloat16, 17);
  const Matrix w{.values_NC = draw({16, 24}, at::kBFloat16, 18).t()};
  const auto want = x.to(at::kDouble).matmul(w.values_NC.to(at::kDouble).t());
  EXPECT_LT(difference(ops::cpu::linear(x, w, {}), want), 1.0 / 256);
  EXPECT_LT(difference(ops::cpu::linear(x.narrow(0, 0, 2), w, {}), want.narrow(0, 0, 2)),
            1.0 / 256);
}

TEST(OwnLayers, AddWhatIsBesideThemBeforeGelu) {
  const auto numbers = [](at::IntArrayRef shape) { return draw(shape, at::kBFloat16, 20); };
  const auto x = numbers({70, 40}), rows = numbers({24, 40}), up = numbers({24, 40});
  const LowRank low_rank{
      .down_RC = at::eye(40).to(x), .scales_R = at::ones({40}).to(x), .up_NR = up};
  const Matrix w{.values_NC = rows, .low_rank = std::make_shared<const LowRank>(low_rank)};
  const auto sum = x.to(at::kDouble).mm((rows.to(at::kDouble) + up).t());
  Scratch scratch;
  EXPECT_LT(difference(ops::linear_gelu(x, w, {}, scratch), at::gelu(sum, "tanh")), 4 * kUnit);
}

TEST(OwnLayers, MayHaveNoOutputs) {
  for (const auto form : {Quantize::kNone, Quantize::kInt8, Quantize::kInt8Dynamic}) {
    auto w = Matrix{.form = form, .values_NC = at::empty({0, 16}, at::kChar)};
    if (form == Quantize::kNone) w.values_NC = w.values_NC.to(at::kBFloat16);
    if (form != Quantize::kNone) w.scales_N1 = at::empty({0, 1}, at::kFloat);
    for (const std::int64_t tokens : {1, 80})
      EXPECT_EQ(ops::cpu::linear(draw({tokens, 16}, at::kBFloat16, 19), w, {}).sizes(),
                (std::vector<std::int64_t>{tokens, 0}));
  }
}

TEST(OwnLayers, RefuseWhatDoesNotFitTogether) {
  const Matrix w{.values_NC = draw({8, 16}, at::kBFloat16, 13)};
  const auto x = draw({3, 16}, at::kBFloat16, 14);
  EXPECT_ANY_THROW(ops::cpu::linear(x.narrow(1, 0, 15), w, {}));
  EXPECT_ANY_THROW(ops::cpu::linear(x, w, draw({1}, at::kBFloat16, 15)));
  auto codes = quantize_rows(w.values_NC, Quantize::kInt8Dynamic);
  EXPECT_ANY_THROW(ops::cpu::linear(x, codes, {}, ops::cpu::Finish::kGelu));
  codes.scales_N1 = codes.scales_N1.narrow(0, 0, 7);
  EXPECT_ANY_THROW(ops::cpu::linear(x, codes, {}));
}

TEST(OwnLayers, AreTheSameForAnyNumberOfThreads) {
  const Matrix w{.values_NC = draw({520, 300}, at::kBFloat16, 15)};
  const auto x = draw({200, 300}, at::kBFloat16, 16);
  const auto by = [&](int threads) {
    const UseThreads use(threads);
    return ops::cpu::linear(x, w, {});
  };
  const auto one = by(1);
  for (const int threads : {2, 3, 5}) EXPECT_TRUE(at::equal(one, by(threads))) << threads;
}

// at::parallel_for is a plain loop in code compiled without OpenMP. Threads take tasks as they
// finish them: here a thread's first task waits for all threads to begin one.
TEST(OwnLayers, AreMadeByAllThreads) {
  const UseThreads use(3);
  std::mutex mutex;
  std::condition_variable begun;
  std::set<std::thread::id> seen;
  const auto nothing = [](auto&&...) {};
  ops::cpu::run(ops::cpu::Product<float>{.kernels = &ops::product_kernels(),
                                         .tokens = 100,
                                         .outputs = 3000,
                                         .inputs = 1,
                                         .take = nothing,
                                         .pack = nothing,
                                         .begin =
                                             [&](std::int64_t, ops::cpu::Range n, float* sums) {
                                               std::fill_n(sums, n.count, 0.f);
                                               std::unique_lock lock(mutex);
                                               if (seen.insert(std::this_thread::get_id()).second)
                                                 begun.notify_all();
                                               begun.wait_for(lock, std::chrono::seconds(10),
                                                              [&] { return seen.size() == 3; });
                                             },
                                         .finish = nothing});
  EXPECT_EQ(seen.size(), 3u);
}

}  // namespace braid::products_test
