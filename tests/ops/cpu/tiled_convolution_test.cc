// Convolutions by tiles against their definition in float64: by emulated tiles, and by the
// processor's if it has them.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/cpu/tiled_convolution.h"
#include "use_threads.h"

namespace braid::ops::of_loops {
ProductKernels with_tiles(const ProductKernels& vectors);  // tiles.cc on tiles_of_loops.h
}  // namespace braid::ops::of_loops

namespace braid::tiled_convolution_test {

using at::Tensor;
using ops::ProductKernels;
using ops::cpu::PixelRun, ops::cpu::round_up, ops::cpu::TiledConvolution;

struct Case {
  std::int64_t in, out, height, width;
};

std::vector<const ProductKernels*> kernels_with_tiles() {
  static const auto loops = ops::of_loops::with_tiles(*ops::runnable_products(0).kernels);
  std::vector<const ProductKernels*> all = {&loops};
  if (ops::has_tiles()) all.push_back(&ops::product_kernels());
  return all;
}

// x [I H W] padded with zeros, in whole panels.
Tensor framed(const Tensor& x, std::int64_t panel) {
  const auto width = round_up(x.size(2), panel);
  auto all = at::zeros({x.size(0), x.size(1) + 2, width + 2}, x.options());
  all.narrow(1, 1, x.size(1)).narrow(2, 1, x.size(2)).copy_(x);
  return all;
}

struct Problem {
  Tensor x_IHW, weight_OI33;

  explicit Problem(const Case& c)
      : x_IHW(at::randn({c.in, c.height, c.width}).to(at::kBFloat16)),
        weight_OI33(at::randn({c.out, c.in, 3, 3}).to(at::kBFloat16)) {}

  Tensor exact() const {
    return at::conv2d(x_IHW.unsqueeze(0).to(at::kDouble), weight_OI33.to(at::kDouble), {}, 1, 1)[0];
  }
  // [O H W]; checks that each pixel is written once.
  Tensor by(const ProductKernels& kernels) const {
    const auto height = x_IHW.size(1), width = x_IHW.size(2);
    const auto in = framed(x_IHW, kernels.columns);
    const auto y =
        at::full({weight_OI33.size(0), height, in.size(2) - 2}, std::nan(""), at::kFloat);
    TiledConvolution(weight_OI33, kernels)
        .convolve(in, [&](const PixelRun& run, const float* sums) {
          auto* const to = y[run.channel][run.row].mutable_data_ptr<float>() + run.column;
          for (std::int64_t i = 0; i < run.count; ++i) {
            EXPECT_TRUE(std::isnan(to[i])) << "a pixel is put twice";
            to[i] = sums[i];
          }
        });
    return y.narrow(2, 0, width);
  }
};

class TiledConvolutions : public testing::TestWithParam<Case> {};

TEST_P(TiledConvolutions, EqualTheirDefinition) {
  const Problem problem(GetParam());
  const auto want = problem.exact();
  for (const auto* const kernels : kernels_with_tiles()) {
    const auto error = (problem.by(*kernels).to(at::kDouble) - want).abs().max() / want.abs().max();
    EXPECT_LT(error.item<double>(), 2e-6);
  }
}

// Odd numbers of channels and columns; more than a chunk of words, a block of outputs and a task's
// panels.
INSTANTIATE_TEST_SUITE_P(Sizes, TiledConvolutions,
                         testing::Values(Case{1, 1, 1, 1}, Case{16, 16, 3, 5}, Case{33, 17, 4, 32},
                                         Case{130, 35, 2, 40}, Case{260, 300, 2, 33},
                                         Case{6, 5, 19, 65}));

TEST(TiledConvolutionTest, GiveTheSameBits) {
  const Problem problem({.in = 40, .out = 48, .height = 37, .width = 70});
  for (const auto* const kernels : kernels_with_tiles()) {
    const auto by = [&](int threads) {
      const UseThreads use(threads);
      return problem.by(*kernels);
    };
    EXPECT_TRUE(at::equal(by(1), by(3)));
  }
}

TEST(TiledConvolutionTest, RefuseBrokenPanels) {
  const auto& kernels = *kernels_with_tiles().front();
  TiledConvolution conv(at::zeros({4, 4, 3, 3}, at::kBFloat16), kernels);
  const auto nothing = [](const PixelRun&, const float*) {};
  const auto refuses = [&](at::IntArrayRef shape, at::ScalarType dtype) {
    EXPECT_ANY_THROW(conv.convolve(at::zeros(shape, dtype), nothing));
  };
  refuses({4, 3, kernels.columns + 3}, at::kBFloat16);
  refuses({4, 2, kernels.columns + 2}, at::kBFloat16);
  refuses({5, 3, kernels.columns + 2}, at::kBFloat16);
  refuses({4, 3, kernels.columns + 2}, at::kFloat);
}

}  // namespace braid::tiled_convolution_test
