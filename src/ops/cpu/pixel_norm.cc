#include "ops/cpu/pixel_norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

namespace braid::ops::cpu {

PixelScales pixel_scales_of(const Tensor& x_CHW, const PixelNormParts& norm) {
  const auto channels = x_CHW.size(0), height = x_CHW.size(1), width = x_CHW.size(2);
  const Planes from(x_CHW);
  const auto& kernels = kernels_of(x_CHW);
  PixelScales scales{.lengths_HW = at::empty({height, width}, x_CHW.options().dtype(at::kFloat)),
                     .scales = std::vector<float>(std::size_t(channels))};
  auto* const lengths = scales.lengths_HW.mutable_data_ptr<float>();
  at::parallel_for(0, height, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto h = begin; h < end; ++h) {
      auto* const row = lengths + h * width;
      std::fill_n(row, width, 0.F);
      for (std::int64_t c = 0; c < channels; ++c) kernels.add_squares(from.at(c, h), row, width);
      for (std::int64_t w = 0; w < width; ++w)
        row[w] = std::max(std::sqrt(row[w]), float(PixelNormParts::kShortest));
    }
  });
  const auto gamma = norm.gamma_C.to(at::kFloat).contiguous();
  const double root = std::sqrt(double(channels));
  for (std::int64_t c = 0; c < channels; ++c)
    scales.scales[std::size_t(c)] = float(gamma.const_data_ptr<float>()[c] * root);
  return scales;
}

void make_normed_rows(const Tensor& x_CHW, const PixelScales& scales, RowRange rows,
                      const Tensor& to_CHW) {
  const Planes from(x_CHW), to(to_CHW);
  const auto& kernels = kernels_of(x_CHW);
  const auto width = x_CHW.size(2);
  const auto* const lengths = scales.lengths_HW.const_data_ptr<float>() + rows.begin * width;
  const bool widens = to_CHW.scalar_type() != x_CHW.scalar_type();
  const auto silu = widens ? kernels.pixel_silu_wide : kernels.pixel_silu;
  at::parallel_for(0, x_CHW.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto c = begin; c < end; ++c)
      for (std::int64_t r = 0; r < rows.count; ++r)
        silu(from.at(c, rows.begin + r), lengths + r * width, scales.scales[std::size_t(c)],
             to.at(c, r), width);
  });
}

TakePixels take_normed(const Tensor& x_CHW, std::shared_ptr<const PixelScales> scales) {
  const auto* const lengths = scales->lengths_HW.const_data_ptr<float>();
  return [from = Planes(x_CHW), silu = kernels_of(x_CHW).pixel_silu_wide, lengths,
          width = x_CHW.size(2), scales = std::move(scales)](const PixelRun& run, float* to) {
    silu(from.at(run.channel, run.row, run.column), lengths + run.row * width + run.column,
         scales->scales[std::size_t(run.channel)], to, run.count);
  };
}

}  // namespace braid::ops::cpu
