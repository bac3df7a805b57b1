#include "ops/cpu/image.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <functional>
#include <memory>

#include "base/error.h"
#include "base/free_memory.h"
#include "ops/cpu/group_norm.h"
#include "ops/cpu/image_engine.h"
#include "ops/cpu/pixel_norm.h"
#include "ops/cpu/tensor_rows.h"

namespace braid::ops::cpu {
namespace {

Tensor empty_result(const Tensor& x, const Convolution& conv, at::IntArrayRef size) {
  return at::empty({x.size(0), conv.weight_OIKK.size(0), size[0], size[1]}, x.options());
}

using InputOf = std::function<ImageInput(std::int64_t image)>;

// Convolves images one by one.
Tensor convolve_each(const ImageResult& result, const Convolution& conv, const InputOf& input_of,
                     const Band& band) {
  const auto one = [](const Tensor& all, std::int64_t i) {
    return all.defined() ? all.narrow(0, i, 1) : all;
  };
  const ImageEngine engine(conv, result.y);
  for (std::int64_t i = 0; i < result.y.size(0); ++i)
    engine.convolve(input_of(i), {one(result.y, i), one(result.residual, i)}, band);
  return result.y;
}

// The same for inputs computed from x, with a residual whose memory the result may take.
Tensor convolve_made(const Tensor& x, const InputOf& input_of, const Convolution& conv,
                     const std::optional<ImageResidual>& residual, const Band& band) {
  if (!residual)
    return convolve_each({empty_result(x, conv, x.sizes().slice(2)), {}}, conv, input_of, band);
  const auto added = residual->x_BCHW.contiguous();
  check(added.size(0) == x.size(0) && added.size(1) == conv.weight_OIKK.size(0) &&
            added.sizes().slice(2) == x.sizes().slice(2) && added.scalar_type() == x.scalar_type(),
        "an image of shape ", added.sizes(), " in ", added.scalar_type(),
        " cannot be added to a convolution of ", x.sizes(), " in ", x.scalar_type());
  const bool is_reused = residual->memory == ImageResidual::Memory::kReused;
  return convolve_each({is_reused ? added : at::empty_like(added), added}, conv, input_of, band);
}

// The image [I H W] itself.
ImageInput unchanged(const Tensor& x_BIHW, std::int64_t i) {
  return {.height = x_BIHW.size(2),
          .width = x_BIHW.size(3),
          .make = [one = x_BIHW.narrow(0, i, 1)](
                      RowRange rows, const Tensor& to) { to.copy_(rows_of(one, rows)); },
          .take =
              [from = Planes(x_BIHW.select(0, i)), &kernels = kernels_of(x_BIHW)](
                  const PixelRun& run, float* to) {
                kernels.widened(from.at(run.channel, run.row, run.column), to, run.count);
              }};
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

// A run of the doubled image; its ends may be the second and the first of a pair.
TakePixels take_doubled(const Tensor& x_CHW) {
  return [from = Planes(x_CHW), &kernels = kernels_of(x_CHW)](const PixelRun& run, float* to) {
    const auto at = [&](std::int64_t column) { return from.at(run.channel, run.row / 2, column); };
    const auto begins = run.column % 2, pairs = (run.count - begins) / 2;
    if (begins) kernels.widened(at(run.column / 2), to, 1);
    kernels.doubled_wide(at((run.column + 1) / 2), to + begins, pairs);
    if (begins + 2 * pairs < run.count)
      kernels.widened(at((run.column + run.count) / 2), to + run.count - 1, 1);
  };
}

bool supports(const Tensor& x, const Convolution& conv) {
  const bool is_float = x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16;
  return x.is_cpu() && is_float && x.dim() == 4 && x.numel() > 0 &&
         conv.weight_OIKK.scalar_type() == x.scalar_type() &&
         conv.weight_OIKK.size(1) == x.size(1) && conv.bias_O.numel() == conv.weight_OIKK.size(0);
}

// conv(silu(normed x)), with what the norm of a whole image [C H W] makes of it.
template <class FactsOf>
Tensor convolve_normed_by(const Tensor& x, const Convolution& conv,
                          const std::optional<ImageResidual>& residual, const Band& band,
                          const FactsOf& facts_of) {
  const auto dense = x.contiguous();
  const auto input_of = [&](std::int64_t i) -> ImageInput {
    const auto one = dense.select(0, i);
    const auto facts = facts_of(one);
    return {.height = x.size(2),
            .width = x.size(3),
            .make = [one, facts](
                        RowRange rows,
                        const Tensor& to) { make_normed_rows(one, *facts, rows, to.select(0, 0)); },
            .take = take_normed(one, facts),
            .prefetch =
                [from = Planes(one)](const PixelRun& run) {
                  from.prefetch(run.channel, run.row, run.column, run.count);
                }};
  };
  return convolve_made(x, input_of, conv, residual, band);
}

}  // namespace

bool convolves(const Tensor& x, const Convolution& conv) {
  return supports(x, conv) && conv.stride == 1 && conv.weight_OIKK.size(2) == 2 * conv.padding + 1;
}

bool halves(const Tensor& x, const Convolution& conv) {
  return supports(x, conv) && conv.stride == 2 && conv.padding == 0 &&
         conv.weight_OIKK.size(2) == 3 && x.size(2) > 1 && x.size(3) > 1;
}

Tensor convolve_halved(const Tensor& x, const Convolution& conv, Band band) {
  const std::int64_t size[] = {x.size(2) / 2, x.size(3) / 2};
  const auto input_of = [&](std::int64_t i) { return unchanged(x, i); };
  return convolve_each({empty_result(x, conv, size), {}}, conv, input_of, band);
}

Tensor convolve(const Tensor& x, const Convolution& conv, Band band) {
  const auto dense = x.contiguous();
  const auto input_of = [&](std::int64_t i) { return unchanged(dense, i); };
  return convolve_each({empty_result(x, conv, x.sizes().slice(2)), {}}, conv, input_of, band);
}

Tensor convolve_doubled(const Tensor& x, const Convolution& conv, Band band) {
  give_back_free_memory();  // the next allocations are four times as large and fit in none of it
  const std::int64_t size[] = {2 * x.size(2), 2 * x.size(3)};
  const auto dense = x.contiguous();
  const auto input_of = [&](std::int64_t i) -> ImageInput {
    const auto one = dense.select(0, i);
    return {.height = size[0],
            .width = size[1],
            .make = [one](RowRange rows,
                          const Tensor& to) { make_doubled_rows(one, rows, to.select(0, 0)); },
            .take = take_doubled(one)};
  };
  return convolve_each({empty_result(x, conv, size), {}}, conv, input_of, band);
}

Tensor convolve_normed(const Tensor& x, const GroupNormParts& norm, const Convolution& conv,
                       const std::optional<ImageResidual>& residual, Band band) {
  check(x.size(1) % norm.groups == 0, "group norm of ", x.size(1), " channels in ", norm.groups,
        " groups");
  check(norm.weight_C.numel() == x.size(1) && norm.bias_C.numel() == x.size(1), "a group norm of ",
        norm.weight_C.numel(), " channels for an image of ", x.size(1));
  return convolve_normed_by(x, conv, residual, band, [&](const Tensor& one) {
    return std::make_shared<const Affine>(affine_of(one, norm));
  });
}

Tensor convolve_normed(const Tensor& x, const PixelNormParts& norm, const Convolution& conv,
                       const std::optional<ImageResidual>& residual, Band band) {
  check(norm.gamma_C.numel() == x.size(1), "a norm of ", norm.gamma_C.numel(),
        " channels for an image of ", x.size(1));
  return convolve_normed_by(x, conv, residual, band, [&](const Tensor& one) {
    return std::make_shared<const PixelScales>(pixel_scales_of(one, norm));
  });
}

}  // namespace braid::ops::cpu
