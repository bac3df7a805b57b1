#include "ops/cpu/image_engine.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>

#include "ops/cpu/pair_convolution.h"
#include "ops/cpu/tiled_convolution.h"
#include "ops/cpu/winograd.h"
#include "ops/kernels/products.h"

namespace braid::ops::cpu {
namespace {

// Filtering in float32 is faster than LibTorch's convolutions by bfloat16 pairs, and as fast as
// those by tiles.
at::ScalarType dtype_to_convolve(const Tensor& x) {
  return has_tiles() || !leads_in_bfloat16() ? x.scalar_type() : at::kFloat;
}

Convolution in_dtype(const Convolution& conv, at::ScalarType dtype) {
  auto typed = conv;
  typed.weight_OIKK = conv.weight_OIKK.to(dtype);
  typed.bias_O = conv.bias_O.to(dtype).contiguous();
  return typed;
}

// Writes sums plus bias, and the residual if any, into rows of y. All must outlive it.
PutPixels put_into(const ImageResult& result, RowRange rows, const Tensor& bias_O) {
  const auto& [y, residual] = result;
  const Planes to(y.select(0, 0)), added((residual.defined() ? residual : y).select(0, 0));
  return [=, &kernels = kernels_of(y), bias = bias_O.const_data_ptr<float>(),
          adds = residual.defined(), width = y.size(3)](const PixelRun& run, const float* sums) {
    const auto count = std::min(run.count, width - run.column), row = rows.begin + run.row;
    if (run.row >= rows.count || count <= 0) return;
    kernels.biased(sums, bias[run.channel], adds ? added.at(run.channel, row, run.column) : nullptr,
                   to.at(run.channel, row, run.column), count);
  };
}

// The memory of such runs, before it is read and written. Runs may end beyond the image.
PrefetchPixels prefetch_for(const ImageResult& result) {
  const auto& [y, residual] = result;
  const bool adds = residual.defined() && residual.const_data_ptr() != y.const_data_ptr();
  const Planes to(y.select(0, 0)), added((adds ? residual : y).select(0, 0));
  return [=, height = y.size(2), width = y.size(3)](const PixelRun& run) {
    const auto count = std::min(run.count, width - run.column);
    if (run.row >= height || count <= 0) return;
    if (adds) added.prefetch(run.channel, run.row, run.column, count);
    to.prefetch_to_write(run.channel, run.row, run.column, count);
  };
}

// The fewest products whose errors disappear in the result's dtype.
const WinogradKernels& winograd_for(const Tensor& y) {
  if (y.scalar_type() == at::kFloat) return winograd_kernels(WinogradSize::kTwo);
  const auto &four = winograd_kernels(WinogradSize::kFour),
             &six = winograd_kernels(WinogradSize::kSix);
  const auto products = [&](const auto& k) { return Winograd::products(y.size(2), y.size(3), k); };
  return products(four) < products(six) ? four : six;
}

// Pixels of rows in float32, of which the first is row `first` of the image.
TakePixels take_from(const Tensor& rows_IHW, std::int64_t first) {
  return [from = Planes(rows_IHW), first](const PixelRun& run, float* to) {
    const auto* const at = from.at(run.channel, run.row - first, run.column);
    std::copy_n(reinterpret_cast<const float*>(at), run.count, to);
  };
}

}  // namespace

ImageEngine::Way ImageEngine::by_libtorch(const Convolution& conv) {
  const auto convolve = [conv](const Tensor& in, RowRange rows, const ImageResult& result) {
    auto out = reference::convolve_padded(in, conv, {0, conv.padding});
    if (result.residual.defined()) out.add_(rows_of(result.residual, rows));
    rows_of(result.y, rows).copy_(out);
  };
  return {.dtype = conv.weight_OIKK.scalar_type(), .right = conv.stride - 1, .rows = convolve};
}

ImageEngine::Way ImageEngine::by_winograd(const Convolution& conv, const Tensor& y) {
  const auto taps = std::make_shared<Winograd>(conv.weight_OIKK, winograd_for(y));
  const auto convolve = [taps, bias = conv.bias_O](const Winograd::Image& image, RowRange rows,
                                                   const ImageResult& result) {
    taps->convolve(
        image, {rows.begin, rows.count},
        {.put = put_into(result, {0, image.height}, bias), .prefetch = prefetch_for(result)});
  };
  return {.dtype = at::kFloat,
          .tile = taps->tile(),
          .rows =
              [convolve](const Tensor& in, RowRange rows, const ImageResult& result) {
                convolve({.height = result.y.size(2),
                          .width = result.y.size(3),
                          .take = take_from(in.select(0, 0), rows.begin - 1)},
                         rows, result);
              },
          .taken =
              [convolve](const ImageInput& input, const ImageResult& result) {
                convolve({.height = input.height,
                          .width = input.width,
                          .take = input.take,
                          .prefetch = input.prefetch},
                         {0, input.height}, result);
              }};
}

ImageEngine::Way ImageEngine::by_tiles(const Convolution& conv, const Tensor& y) {
  const auto& products = product_kernels();
  const auto taps = std::make_shared<TiledConvolution>(conv.weight_OIKK, products);
  const auto convolve = [taps, bias = conv.bias_O.to(at::kFloat)](const Tensor& in, RowRange rows,
                                                                  const ImageResult& result) {
    taps->convolve(in.select(0, 0), put_into(result, rows, bias));
  };
  return {.dtype = at::kBFloat16,
          .left = 1,
          .right = 1 + round_up(y.size(3), products.columns) - y.size(3),
          .rows = convolve};
}

ImageEngine::Way ImageEngine::by_pairs(const Convolution& conv) {
  const auto taps =
      std::make_shared<PairConvolution>(conv.weight_OIKK, conv.stride, product_kernels());
  const auto convolve = [taps, bias = conv.bias_O.to(at::kFloat).contiguous()](
                            const Tensor& in, RowRange rows, const ImageResult& result) {
    taps->convolve(in.select(0, 0), put_into(result, rows, bias));
  };
  return {.dtype = at::kBFloat16,
          .left = conv.padding,
          .right = conv.stride == 2 ? 2 : conv.padding,
          .rows = convolve};
}

ImageEngine::Way ImageEngine::best_way(const Convolution& conv, const Tensor& y) {
  const auto typed = in_dtype(conv, dtype_to_convolve(y));
  const bool is_float = typed.weight_OIKK.scalar_type() == at::kFloat;
  const auto size = conv.weight_OIKK.sizes();
  if (conv.stride == 1 && !is_float && TiledConvolution::pays(size, product_kernels()))
    return by_tiles(typed, y);
  if (conv.stride == 1 && is_float && Winograd::pays(size, y.size(2), y.size(3), winograd_for(y)))
    return by_winograd(typed, y);
  if (y.scalar_type() == at::kBFloat16 && PairConvolution::pays(size, product_kernels()))
    return by_pairs(conv);
  return by_libtorch(typed);
}

ImageEngine::ImageEngine(const Convolution& conv, const Tensor& y)
    : way_(best_way(conv, y)),
      inputs_(conv.weight_OIKK.size(1)),
      kernel_(conv.weight_OIKK.size(2)),
      stride_(conv.stride),
      padding_(conv.padding) {}

void ImageEngine::convolve(const ImageInput& input, const ImageResult& result,
                           const Band& size) const {
  if (way_.taken) return way_.taken(input, result);
  const auto& y = result.y;
  const auto height = y.size(2), left = way_.left, right = way_.right;
  const auto channels = stride_ == 1 ? std::max(inputs_, y.size(1)) : inputs_;
  const auto row_bytes =
      stride_ * channels * input.width * std::int64_t(at::elementSize(way_.dtype));
  const auto most = std::max(size.bytes / row_bytes, size.fewest_rows);
  const auto band = round_up(blocks_in(height, blocks_in(height, most)), way_.tile);
  const auto rows_in = [&](std::int64_t rows) { return (rows - 1) * stride_ + kernel_; };
  const auto all = at::empty({1, inputs_, rows_in(band), left + input.width + right},
                             y.options().dtype(way_.dtype));
  all.narrow(3, 0, left).zero_();
  all.narrow(3, left + input.width, right).zero_();
  for (std::int64_t begin = 0; begin < height; begin += band) {
    const RowRange rows{begin, std::min(band, height - begin)};
    const auto in = all.narrow(2, 0, rows_in(rows.count));
    const auto top = begin * stride_ - padding_;  // the image's row in the first of `in`
    const auto first = std::max<std::int64_t>(0, top);
    const auto made = std::min(input.height, top + in.size(2)) - first, above = first - top;
    in.narrow(2, 0, above).zero_();
    in.narrow(2, above + made, in.size(2) - above - made).zero_();
    input.make({first, made}, in.narrow(2, above, made).narrow(3, left, input.width));
    way_.rows(in, rows, result);
  }
}

}  // namespace braid::ops::cpu
