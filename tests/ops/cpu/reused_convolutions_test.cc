// Convolutions as a decoder uses them: one object for bands of several sizes, images and residuals
// that are views, statistics and biases in another dtype, and parts that do not fit together.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "drawn.h"
#include "ops/cpu/image.h"
#include "ops/cpu/tiled_convolution.h"
#include "ops/cpu/winograd.h"
#include "ops/image.h"

namespace braid::ops::of_loops {
ProductKernels with_tiles(const ProductKernels& vectors);  // tiles.cc on tiles_of_loops.h
}  // namespace braid::ops::of_loops

namespace braid::reused_convolutions_test {

using at::Tensor;
using ops::cpu::PixelRun, ops::cpu::round_up;

struct Size {
  std::int64_t height, width;
};

// Small, large, small again: what a larger image left in the shared memory must not be read.
constexpr Size kSizes[] = {{5, 9}, {40, 70}, {3, 33}, {41, 20}, {1, 1}};

// x [I H W] within zeros, as bands are given to the tiles, and wide enough for whole ones.
Tensor framed(const Tensor& x, std::int64_t columns) {
  auto all = at::zeros({x.size(0), x.size(1) + 2, round_up(x.size(2), columns) + 2}, x.options());
  all.narrow(1, 1, x.size(1)).narrow(2, 1, x.size(2)).copy_(x);
  return all;
}

auto put_into(const Tensor& y_OHW) {
  return [=](const PixelRun& run, const float* sums) {
    std::copy_n(sums, run.count,
                y_OHW[run.channel][run.row].mutable_data_ptr<float>() + run.column);
  };
}

Tensor convolved(ops::cpu::TiledConvolution& engine, const Tensor& framed_IHW, std::int64_t outputs,
                 Size size) {
  const auto y = at::full({outputs, framed_IHW.size(1) - 2, framed_IHW.size(2) - 2}, std::nan(""));
  engine.convolve(framed_IHW, put_into(y));
  return y.narrow(1, 0, size.height).narrow(2, 0, size.width);
}

Tensor convolved(ops::cpu::Winograd& engine, const Tensor& x_IHW, std::int64_t outputs, Size size) {
  const auto tile = engine.tile();
  const auto y =
      at::full({outputs, round_up(size.height, tile), round_up(size.width, tile)}, std::nan(""));
  const auto take = [&](const PixelRun& run, float* to) {
    std::copy_n(x_IHW[run.channel][run.row].const_data_ptr<float>() + run.column, run.count, to);
  };
  engine.convolve({.height = size.height, .width = size.width, .take = take}, {0, size.height},
                  {.put = put_into(y)});
  return y.narrow(1, 0, size.height).narrow(2, 0, size.width);
}

Tensor exact(const Tensor& x_IHW, const Tensor& weight) {
  return at::conv2d(x_IHW.unsqueeze(0).to(at::kDouble), weight.to(at::kDouble), {}, 1, 1)[0];
}

double error_of(const Tensor& got, const Tensor& want) {
  return ((got.to(at::kDouble) - want).abs().max() / want.abs().max()).item<double>();
}

TEST(ReusedConvolutions, ByWinogradEqualTheirDefinitionAtEverySize) {
  const auto weight = draw_floats({18, 20, 3, 3}, 1);
  for (const auto size :
       {ops::WinogradSize::kTwo, ops::WinogradSize::kFour, ops::WinogradSize::kSix})
    for (int i = 0; const auto* kernels = ops::runnable_winograd(i, size); ++i) {
      ops::cpu::Winograd engine(weight, *kernels);
      for (const auto& of : kSizes) {
        const auto x = draw_floats({20, of.height, of.width}, 2);
        EXPECT_LT(error_of(convolved(engine, x, 18, of), exact(x, weight)), 1e-4)
            << int(size) << " " << i << ", " << of.height << " x " << of.width;
      }
    }
}

TEST(ReusedConvolutions, ByTilesEqualTheirDefinitionAtEverySize) {
  const auto weight = draw_floats({18, 21, 3, 3}, 3).to(at::kBFloat16);
  static const auto loops = ops::of_loops::with_tiles(*ops::runnable_products(0).kernels);
  std::vector<const ops::ProductKernels*> all = {&loops};
  if (ops::has_tiles()) all.push_back(&ops::product_kernels());
  for (const auto* const kernels : all) {
    ops::cpu::TiledConvolution engine(weight, *kernels);
    for (const auto& of : kSizes) {
      const auto x = draw_floats({21, of.height, of.width}, 4).to(at::kBFloat16);
      EXPECT_LT(error_of(convolved(engine, framed(x, kernels->columns), 18, of), exact(x, weight)),
                2e-6)
          << of.height << " x " << of.width;
    }
  }
}

// ---------------------------------------------------------------------------------- views

struct Layer {
  Tensor x, residual;
  Convolution conv;
  GroupNormParts groups;
  PixelNormParts pixels;
};

// The layer has enough channels for Winograd's filtering, or too few.
Layer layer_of(std::int64_t channels, at::ScalarType dtype) {
  const auto of = [&](at::IntArrayRef shape, std::uint64_t seed) {
    return draw_floats(shape, seed).to(dtype);
  };
  return {.x = of({2, channels, 14, 18}, 5),
          .residual = of({2, channels, 14, 18}, 6),
          .conv = {.weight_OIKK = of({channels, channels, 3, 3}, 7),
                   .bias_O = of({channels}, 8),
                   .padding = 1},
          .groups = {.weight_C = of({channels}, 9),
                     .bias_C = of({channels}, 10),
                     .groups = 2,
                     .eps = 1e-6},
          .pixels = {.gamma_C = of({channels}, 11)}};
}

using View = Tensor (*)(const Tensor& x);
const View kViews[] = {
    [](const Tensor& x) { return x.transpose(2, 3).contiguous().transpose(2, 3); },
    [](const Tensor& x) { return x.contiguous(at::MemoryFormat::ChannelsLast); },
    [](const Tensor& x) {
      return at::cat({x, -x}, 3).narrow(3, 0, x.size(3));
    },
    [](const Tensor& x) {
      return at::stack({-x, x}, 1).select(1, 1);
    },
    [](const Tensor& x) {
      return at::stack({x, -x}, -1).select(-1, 0);
    }};

TEST(Convolutions, TakeImagesAndResidualsOfAnyStrides) {
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const std::int64_t channels : {6, 32}) {
      const auto l = layer_of(channels, dtype);
      const auto plain = ops::convolve(l.x, l.conv), doubled = ops::convolve_doubled(l.x, l.conv),
                 by_groups = ops::convolve_normed(l.x, l.groups, l.conv, ImageResidual{l.residual}),
                 by_pixels = ops::convolve_normed(l.x, l.pixels, l.conv, ImageResidual{l.residual});
      for (const auto& view : kViews) {
        const auto x = view(l.x);
        EXPECT_TRUE(at::equal(ops::convolve(x, l.conv), plain)) << dtype << channels;
        EXPECT_TRUE(at::equal(ops::convolve_doubled(x, l.conv), doubled)) << dtype << channels;
        for (const auto memory : {ImageResidual::Memory::kKept, ImageResidual::Memory::kReused}) {
          const ImageResidual added{view(l.residual.clone()), memory},
              more{view(l.residual.clone()), memory};
          EXPECT_TRUE(at::equal(ops::convolve_normed(x, l.groups, l.conv, added), by_groups))
              << dtype << channels;
          // LibTorch sums the lengths of pixels in another order
          const auto close = ops::convolve_normed(x, l.pixels, l.conv, more);
          EXPECT_LT(error_of(close, by_pixels.to(at::kDouble)),
                    dtype == at::kFloat ? 1e-5 : 1.0 / 128)
              << dtype << channels;
        }
      }
    }
}

TEST(GroupNormParts, MayBeViewsOfAnyDtype) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto [x, residual, conv, groups, pixels] = layer_of(6, dtype);
    const auto want = ops::convolve_normed(x, groups, conv);
    auto other = groups;
    other.weight_C = at::stack({groups.weight_C, -groups.weight_C}, 1).select(1, 0);
    other.bias_C = at::stack({groups.bias_C, -groups.bias_C}, 1).select(1, 0);
    EXPECT_TRUE(at::equal(ops::convolve_normed(x, other, conv), want)) << dtype;
    // the numbers of the narrower dtype, kept in the wider one
    other.weight_C = groups.weight_C.to(at::kFloat);
    other.bias_C = groups.bias_C.to(at::kFloat);
    EXPECT_TRUE(at::equal(ops::convolve_normed(x, other, conv), want)) << dtype;
  }
}

// LibTorch's convolutions and our own are tried, which look at no sizes themselves.
TEST(Convolutions, RefusePartsThatDoNotFit) {
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const std::int64_t channels : {6, 32}) {
      const auto l = layer_of(channels, dtype);
      const auto refuses = [&](const Convolution& conv) {
        EXPECT_ANY_THROW((void)ops::convolve(l.x, conv)) << dtype << channels;
        EXPECT_ANY_THROW((void)ops::convolve_doubled(l.x, conv)) << dtype << channels;
        EXPECT_ANY_THROW((void)ops::convolve_normed(l.x, l.groups, conv)) << dtype << channels;
      };
      auto short_bias = l.conv, wide = l.conv, narrow = l.conv;
      short_bias.bias_O = l.conv.bias_O.narrow(0, 0, channels - 1);
      refuses(short_bias);
      wide.weight_OIKK = l.conv.weight_OIKK.to(at::kDouble);
      refuses(wide);
      narrow.weight_OIKK = l.conv.weight_OIKK.narrow(1, 0, channels - 1);
      refuses(narrow);
      auto of_five = l.groups;
      of_five.groups = 5;  // of 6 or 32 channels
      EXPECT_ANY_THROW((void)ops::convolve_normed(l.x, of_five, l.conv)) << dtype << channels;
      const PixelNormParts pixels{.gamma_C = l.pixels.gamma_C.narrow(0, 0, channels - 1)};
      EXPECT_ANY_THROW((void)ops::convolve_normed(l.x, pixels, l.conv)) << dtype << channels;
      const ImageResidual of_one{l.residual.narrow(0, 0, 1)};
      EXPECT_ANY_THROW((void)ops::convolve_normed(l.x, l.groups, l.conv, of_one))
          << dtype << channels;
    }
}

// Pictures of nothing: a batch or a side of 0.
TEST(Convolutions, OfNoPicturesMakeNone) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto [x, residual, conv, groups, pixels] = layer_of(6, dtype);
    const auto none = x.narrow(0, 0, 0);
    EXPECT_EQ(ops::convolve(none, conv).sizes(), none.sizes()) << dtype;
    EXPECT_EQ(ops::convolve_doubled(none, conv).sizes(), (at::IntArrayRef{0, 6, 28, 36})) << dtype;
  }
}

// ------------------------------------------------------------------------------ properties

// Moved by whole pixels, away from the borders, an image gives the moved result.
TEST(Convolutions, MoveWithTheirImages) {
  for (const std::int64_t channels : {6, 32}) {
    const auto conv = layer_of(channels, at::kFloat).conv;
    const auto small = draw_floats({1, channels, 9, 11}, 12);
    const auto at_place = [&](std::int64_t row, std::int64_t column) {
      auto all = at::zeros({1, channels, 30, 34});
      all.narrow(2, row, 9).narrow(3, column, 11).copy_(small);
      return ops::convolve(all, conv).narrow(2, row - 1, 11).narrow(3, column - 1, 13);
    };
    const auto want = at_place(4, 4).to(at::kDouble);
    for (const auto& [row, column] : {std::pair(5, 4), {4, 7}, {13, 15}, {20, 22}})
      EXPECT_LT(error_of(at_place(row, column), want), 1e-5) << channels << " " << row;
  }
}

}  // namespace braid::reused_convolutions_test
