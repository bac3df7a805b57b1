#include "ops/cpu/image.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "base/error.h"
#include "base/free_memory.h"
#include "ops/cpu/group_norm.h"
#include "ops/cpu/tensor_rows.h"
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

Tensor rows_of(const Tensor& x, RowRange rows) { return x.narrow(2, rows.begin, rows.count); }

// Writes rows of the convolution's input to a tensor of that size, in the dtype to convolve in.
using MakeRows = std::function<void(RowRange rows, const Tensor& to)>;

// For one image: y [1 O H W] and, unless undefined, the residual to add.
struct Result {
  Tensor y, residual;
};

// Convolves rows of an image, given with their surrounding rows, or zeros at its borders.
struct Engine {
  std::int64_t around, left = 0, right = 0;  // rows above and below, columns beside an image
  std::int64_t tile = 1;                     // rows come in multiples of this
  std::function<void(const Tensor& in_1IHW, RowRange rows, const Result& result)> convolve;
};

Engine by_libtorch(const Convolution& conv) {
  const auto convolve = [conv](const Tensor& in, RowRange rows, const Result& result) {
    const std::int64_t padding[] = {0, conv.padding};
    auto out = at::conv2d(in, conv.weight_OIKK, conv.bias_O, /*stride=*/1, padding);
    if (result.residual.defined()) out.add_(rows_of(result.residual, rows));
    rows_of(result.y, rows).copy_(out);
  };
  return {.around = conv.padding, .convolve = convolve};
}

// Writes sums plus bias, and the residual if any, into rows of y.
PutPixels put_into(const Result& result, RowRange rows, const Tensor& bias_O) {
  const auto& [y, residual] = result;
  const Planes to(y.select(0, 0)), added((residual.defined() ? residual : y).select(0, 0));
  return [=, &kernels = kernels_of(y), adds = residual.defined(), width = y.size(3)](
             const PixelRun& run, const float* sums) {
    const auto count = std::min(run.count, width - run.column), row = rows.begin + run.row;
    if (run.row >= rows.count || count <= 0) return;
    kernels.biased(sums, bias_O.const_data_ptr<float>()[run.channel],
                   adds ? added.at(run.channel, row, run.column) : nullptr,
                   to.at(run.channel, row, run.column), count);
  };
}

Engine by_winograd(const Convolution& conv, std::int64_t width, const WinogradKernels& winograd) {
  const auto taps = std::make_shared<Winograd>(conv.weight_OIKK, winograd);
  const auto convolve = [taps, bias = conv.bias_O](const Tensor& in, RowRange rows,
                                                   const Result& result) {
    taps->convolve(in.select(0, 0), put_into(result, rows, bias));
  };
  const auto tile = taps->tile(), last = round_up(width, tile) - width;
  return {.around = 1,
          .left = 1,
          .right = 1 + last + WinogradKernels::kSlack,
          .tile = tile,
          .convolve = convolve};
}

Engine by_tiles(const Convolution& conv, std::int64_t width, const ProductKernels& products) {
  const auto taps = std::make_shared<TiledConvolution>(conv.weight_OIKK, products);
  const auto convolve = [taps, bias = conv.bias_O.to(at::kFloat)](const Tensor& in, RowRange rows,
                                                                  const Result& result) {
    taps->convolve(in.select(0, 0), put_into(result, rows, bias));
  };
  return {.around = 1,
          .left = 1,
          .right = 1 + round_up(width, products.columns) - width,
          .convolve = convolve};
}

// The fewest products whose errors disappear in the result's dtype.
const WinogradKernels& winograd_for(const Tensor& y) {
  if (y.scalar_type() == at::kFloat) return winograd_kernels(WinogradSize::kTwo);
  const auto &four = winograd_kernels(WinogradSize::kFour),
             &six = winograd_kernels(WinogradSize::kSix);
  const auto products = [&](const auto& k) { return Winograd::products(y.size(2), y.size(3), k); };
  return products(four) < products(six) ? four : six;
}

// The best engine for images of this size and a convolution in the dtype to convolve in.
Engine engine_for(const Convolution& conv, const Tensor& y) {
  const auto& winograd = winograd_for(y);
  const bool is_float = conv.weight_OIKK.scalar_type() == at::kFloat;
  const auto& products = product_kernels();
  if (!is_float && TiledConvolution::pays(conv.weight_OIKK.sizes(), products))
    return by_tiles(conv, y.size(3), products);
  return is_float && Winograd::pays(conv.weight_OIKK.sizes(), y.size(2), y.size(3), winograd)
             ? by_winograd(conv, y.size(3), winograd)
             : by_libtorch(conv);
}

void convolve_in_bands(const MakeRows& make, const Convolution& conv, const Engine& engine,
                       const Result& result, const Band& size) {
  const auto& y = result.y;
  const auto inputs = conv.weight_OIKK.size(1), height = y.size(2), width = y.size(3);
  const auto dtype = conv.weight_OIKK.scalar_type();
  const auto row_bytes = std::max(inputs, y.size(1)) * width * std::int64_t(at::elementSize(dtype));
  const auto most = std::max(size.bytes / row_bytes, size.fewest_rows);
  const auto bands = blocks_in(height, most);
  const auto band = round_up(blocks_in(height, bands), engine.tile);
  const auto around = engine.around;
  const auto all = at::empty({1, inputs, band + 2 * around, engine.left + width + engine.right},
                             y.options().dtype(dtype));
  all.narrow(3, 0, engine.left).zero_();
  all.narrow(3, engine.left + width, engine.right).zero_();
  for (std::int64_t begin = 0; begin < height; begin += band) {
    const RowRange rows{begin, std::min(band, height - begin)};
    const auto whole = round_up(rows.count, engine.tile);
    const auto first = std::max<std::int64_t>(0, begin - around);
    const auto last = std::min(height, begin + rows.count + around);
    const auto in = all.narrow(2, 0, whole + 2 * around);
    const auto above = around - (begin - first), made = last - first;
    in.narrow(2, 0, above).zero_();
    in.narrow(2, above + made, in.size(2) - above - made).zero_();
    make({first, made}, in.narrow(2, above, made).narrow(3, engine.left, width));
    engine.convolve(in, rows, result);
  }
}

Tensor empty_result(const Tensor& x, const Convolution& conv, at::IntArrayRef size) {
  return at::empty({x.size(0), conv.weight_OIKK.size(0), size[0], size[1]}, x.options());
}

Convolution in_dtype(const Convolution& conv, at::ScalarType dtype) {
  auto typed = conv;
  typed.weight_OIKK = conv.weight_OIKK.to(dtype);
  typed.bias_O = conv.bias_O.to(dtype).contiguous();
  return typed;
}

// Convolves images one by one, in the dtype to convolve in. Rows of `residual` are read before they
// are written, so y may be the same tensor.
Tensor convolve_each(const Result& result, const Convolution& conv,
                     const std::function<MakeRows(std::int64_t image)>& make_rows,
                     const Band& band) {
  const auto one = [](const Tensor& all, std::int64_t i) {
    return all.defined() ? all.narrow(0, i, 1) : all;
  };
  const auto typed = in_dtype(conv, dtype_to_convolve(result.y));
  const auto engine = engine_for(typed, result.y);
  for (std::int64_t i = 0; i < result.y.size(0); ++i)
    convolve_in_bands(make_rows(i), typed, engine, {one(result.y, i), one(result.residual, i)},
                      band);
  return result.y;
}

// The same for inputs computed from x, with a residual whose memory the result may take.
Tensor convolve_made(const Tensor& x, const std::function<MakeRows(std::int64_t image)>& make_rows,
                     const Convolution& conv, const std::optional<ImageResidual>& residual,
                     const Band& band) {
  if (!residual)
    return convolve_each({empty_result(x, conv, x.sizes().slice(2)), {}}, conv, make_rows, band);
  const auto added = residual->x_BCHW.contiguous();
  check(added.size(0) == x.size(0) && added.size(1) == conv.weight_OIKK.size(0) &&
            added.sizes().slice(2) == x.sizes().slice(2) && added.scalar_type() == x.scalar_type(),
        "an image of shape ", added.sizes(), " in ", added.scalar_type(),
        " cannot be added to a convolution of ", x.sizes(), " in ", x.scalar_type());
  const bool is_reused = residual->memory == ImageResidual::Memory::kReused;
  return convolve_each({is_reused ? added : at::empty_like(added), added}, conv, make_rows, band);
}

// For one image [1 I H W]; each row of y reads two rows, and the band one more.
void halve_in_bands(const Tensor& x, const Convolution& conv, const Tensor& y, const Band& size) {
  const auto inputs = x.size(1), height = x.size(2), width = x.size(3);
  const auto dtype = conv.weight_OIKK.scalar_type();
  const auto row_bytes = inputs * (width + 1) * std::int64_t(at::elementSize(dtype));
  const auto most = std::max(size.bytes / (2 * row_bytes), size.fewest_rows);
  const auto band = blocks_in(y.size(2), blocks_in(y.size(2), most));
  const auto all = at::empty({1, inputs, 2 * band + 1, width + 1}, x.options().dtype(dtype));
  all.narrow(3, width, 1).zero_();
  for (std::int64_t begin = 0; begin < y.size(2); begin += band) {
    const RowRange rows{begin, std::min(band, y.size(2) - begin)};
    const auto in = all.narrow(2, 0, 2 * rows.count + 1);
    const auto made = std::min(in.size(2), height - 2 * begin);
    rows_of(in, {0, made}).narrow(3, 0, width).copy_(rows_of(x, {2 * begin, made}));
    rows_of(in, {made, in.size(2) - made}).zero_();
    rows_of(y, rows).copy_(at::conv2d(in, conv.weight_OIKK, conv.bias_O, conv.stride));
  }
}

// Rows of x, each number and each row twice.
void make_doubled_rows(const Tensor& x_CHW, RowRange rows, const Tensor& to_CHW) {
  const Planes from(x_CHW), to(to_CHW);
  const auto& kernels = kernels_of(x_CHW);
  const bool widens = to_CHW.scalar_type() != x_CHW.scalar_type();
  const auto doubled = widens ? kernels.doubled_wide : kernels.doubled;
  at::parallel_for(0, x_CHW.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto c = begin; c < end; ++c)
      for (std::int64_t r = 0; r < rows.count; ++r)
        doubled(from.at(c, (rows.begin + r) / 2), to.at(c, r), x_CHW.size(2));
  });
}

bool is_taken(const Tensor& x, const Convolution& conv) {
  const bool is_float = x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16;
  return x.is_cpu() && is_float && x.dim() == 4 && x.numel() > 0 &&
         conv.weight_OIKK.scalar_type() == x.scalar_type() &&
         conv.weight_OIKK.size(1) == x.size(1) && conv.bias_O.numel() == conv.weight_OIKK.size(0);
}

}  // namespace

bool convolves(const Tensor& x, const Convolution& conv) {
  return is_taken(x, conv) && conv.stride == 1 && conv.weight_OIKK.size(2) == 2 * conv.padding + 1;
}

bool halves(const Tensor& x, const Convolution& conv) {
  return is_taken(x, conv) && conv.stride == 2 && conv.padding == 0 &&
         conv.weight_OIKK.size(2) == 3 && x.size(2) > 1 && x.size(3) > 1;
}

Tensor convolve_halved(const Tensor& x, const Convolution& conv, Band band) {
  const auto typed = in_dtype(conv, dtype_to_convolve(x));
  const auto y = empty_result(x, conv, {x.size(2) / 2, x.size(3) / 2});
  for (std::int64_t i = 0; i < x.size(0); ++i)
    halve_in_bands(x.narrow(0, i, 1), typed, y.narrow(0, i, 1), band);
  return y;
}

Tensor convolve(const Tensor& x, const Convolution& conv, Band band) {
  const auto make_rows = [&](std::int64_t i) -> MakeRows {
    return [one = x.narrow(0, i, 1)](RowRange rows, const Tensor& to) {
      to.copy_(rows_of(one, rows));
    };
  };
  return convolve_each({empty_result(x, conv, x.sizes().slice(2)), {}}, conv, make_rows, band);
}

Tensor convolve_doubled(const Tensor& x, const Convolution& conv, Band band) {
  give_back_free_memory();  // the next allocations are four times as large and fit in none of it
  const std::int64_t size[] = {2 * x.size(2), 2 * x.size(3)};
  const auto dense = x.contiguous();
  const auto make_rows = [&](std::int64_t i) -> MakeRows {
    return [one = dense.select(0, i)](RowRange rows, const Tensor& to) {
      make_doubled_rows(one, rows, to.select(0, 0));
    };
  };
  return convolve_each({empty_result(x, conv, size), {}}, conv, make_rows, band);
}

Tensor convolve_normed(const Tensor& x, const GroupNormParts& norm, const Convolution& conv,
                       const std::optional<ImageResidual>& residual, Band band) {
  check(x.size(1) % norm.groups == 0, "group norm of ", x.size(1), " channels in ", norm.groups,
        " groups");
  check(norm.weight_C.numel() == x.size(1) && norm.bias_C.numel() == x.size(1), "a group norm of ",
        norm.weight_C.numel(), " channels for an image of ", x.size(1));
  const auto dense = x.contiguous();
  const auto make_rows = [&](std::int64_t i) -> MakeRows {
    const auto one = dense.select(0, i);
    return [one, affine = affine_of(one, norm)](RowRange rows, const Tensor& to) {
      make_normed_rows(one, affine, rows, to.select(0, 0));
    };
  };
  return convolve_made(x, make_rows, conv, residual, band);
}

Tensor convolve_normed(const Tensor& x, const PixelNormParts& norm, const Convolution& conv,
                       const std::optional<ImageResidual>& residual, Band band) {
  check(norm.gamma_C.numel() == x.size(1), "a norm of ", norm.gamma_C.numel(),
        " channels for an image of ", x.size(1));
  const auto make_rows = [&](std::int64_t i) -> MakeRows {
    return [one = x.narrow(0, i, 1), norm](RowRange rows, const Tensor& to) {
      auto normed = pixel_norm(rows_of(one, rows), norm);
      to.copy_(at::silu_(normed));
    };
  };
  return convolve_made(x, make_rows, conv, residual, band);
}

}  // namespace braid::ops::cpu
