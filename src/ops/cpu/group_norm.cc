#include "ops/cpu/group_norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>

#include "ops/cpu/tensor_rows.h"

namespace braid::ops::cpu {
namespace {

struct Moments {
  double count = 0, mean = 0, squares = 0;  // squares: summed squared deviations from the mean

  // Chan, Golub and LeVeque, 1979.
  void add(const Moments& more) {
    const double all = count + more.count, delta = more.mean - mean;
    if (all == 0) return;
    squares += more.squares + delta * delta * count * more.count / all;
    mean += delta * more.count / all;
    count = all;
  }
};

Moments moments_of(const Tensor& x_CHW, RowRange channels) {
  const Planes planes(x_CHW);
  const auto height = x_CHW.size(1), width = x_CHW.size(2);
  const auto& kernels = kernels_of(x_CHW);
  Moments all;
  for (auto c = channels.begin; c < channels.begin + channels.count; ++c)
    for (std::int64_t r = 0; r < height; ++r) {
      float mean = 0, squares = 0;
      kernels.moments(planes.at(c, r), width, &mean, &squares);
      all.add({.count = double(width), .mean = mean, .squares = squares});
    }
  return all;
}

}  // namespace

Affine affine_of(const Tensor& x_CHW, const GroupNormParts& norm) {
  const auto channels = x_CHW.size(0), each = channels / norm.groups;
  const auto weight = norm.weight_C.to(at::kFloat).contiguous(),
             bias = norm.bias_C.to(at::kFloat).contiguous();
  Affine affine{.scale = std::vector<float>(std::size_t(channels)),
                .shift = std::vector<float>(std::size_t(channels))};
  at::parallel_for(0, norm.groups, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto g = begin; g < end; ++g) {
      const auto m = moments_of(x_CHW, {g * each, each});
      const double inverse = 1 / std::sqrt(m.squares / m.count + norm.eps);
      for (auto c = g * each; c < (g + 1) * each; ++c) {
        const double scale = weight.const_data_ptr<float>()[c] * inverse;
        affine.scale[std::size_t(c)] = float(scale);
        affine.shift[std::size_t(c)] = float(bias.const_data_ptr<float>()[c] - m.mean * scale);
      }
    }
  });
  return affine;
}

void make_normed_rows(const Tensor& x_CHW, const Affine& affine, RowRange rows,
                      const Tensor& to_CHW) {
  const Planes from(x_CHW), to(to_CHW);
  const auto& kernels = kernels_of(x_CHW);
  const bool widens = to_CHW.scalar_type() != x_CHW.scalar_type();
  const auto silu = widens ? kernels.affine_silu_wide : kernels.affine_silu;
  at::parallel_for(0, x_CHW.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto c = begin; c < end; ++c)
      for (std::int64_t r = 0; r < rows.count; ++r)
        silu(from.at(c, rows.begin + r), affine.scale[std::size_t(c)], affine.shift[std::size_t(c)],
             to.at(c, r), x_CHW.size(2));
  });
}

TakePixels take_normed(const Tensor& x_CHW, std::shared_ptr<const Affine> affine) {
  return [from = Planes(x_CHW), silu = kernels_of(x_CHW).affine_silu_wide,
          affine = std::move(affine)](const PixelRun& run, float* to) {
    const auto c = std::size_t(run.channel);
    silu(from.at(run.channel, run.row, run.column), affine->scale[c], affine->shift[c], to,
         run.count);
  };
}

}  // namespace braid::ops::cpu
