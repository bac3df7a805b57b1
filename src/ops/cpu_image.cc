#include "ops/cpu_image.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "base/cpu.h"
#include "base/error.h"
#include "ops/rows.h"

namespace braid::ops::cpu {
namespace {

const RowKernels& kernels_of(const Tensor& x) {
  return row_kernels(x.scalar_type() == at::kFloat ? RowType::kFloat32 : RowType::kBfloat16);
}

at::ScalarType dtype_to_convolve(const Tensor& x) {
  static const bool has_bfloat16 = read_cpu().has_bfloat16();
  return has_bfloat16 ? x.scalar_type() : at::kFloat;
}

// Rows of an image: [begin, begin + count).
struct RowRange {
  std::int64_t begin, count;
};

Tensor rows_of(const Tensor& x, RowRange rows) { return x.narrow(2, rows.begin, rows.count); }

// Writes rows of what is convolved to a place of that size, which is of the dtype to convolve.
using MakeRows = std::function<void(RowRange rows, const Tensor& to)>;

// Of one image: y [1 O H W] and, unless undefined, what is added to it.
struct Result {
  Tensor y, residual;
};

void convolve_in_bands(const MakeRows& make, const Convolution& conv, const Result& result,
                       const Band& size) {
  const auto& [y, residual] = result;
  const auto inputs = conv.weight_OIKK.size(1), height = y.size(2), width = y.size(3);
  const auto dtype = conv.weight_OIKK.scalar_type();
  const auto row_bytes = std::max(inputs, y.size(1)) * width * std::int64_t(at::elementSize(dtype));
  const auto most = std::max(size.bytes / row_bytes, size.fewest_rows);
  const auto bands = (height + most - 1) / most, band = (height + bands - 1) / bands;
  const auto halo = conv.padding;
  for (std::int64_t begin = 0; begin < height; begin += band) {
    const auto end = std::min(height, begin + band);
    const auto first = std::max<std::int64_t>(0, begin - halo), last = std::min(height, end + halo);
    const auto in = at::empty({1, inputs, end - begin + 2 * halo, width}, y.options().dtype(dtype));
    const auto above = first - (begin - halo), below = end + halo - last;
    in.narrow(2, 0, above).zero_();
    in.narrow(2, in.size(2) - below, below).zero_();
    make({first, last - first}, in.narrow(2, above, last - first));
    auto out = at::conv2d(in, conv.weight_OIKK, conv.bias_O, {1, 1}, at::IntArrayRef{0, halo});
    const RowRange rows{begin, end - begin};
    if (residual.defined()) out.add_(rows_of(residual, rows));
    rows_of(y, rows).copy_(out);
  }
}

Tensor empty_result(const Tensor& x, const Convolution& conv, at::IntArrayRef size) {
  return at::empty({x.size(0), conv.weight_OIKK.size(0), size[0], size[1]}, x.options());
}

// One image after the other, in the dtype to convolve. Rows of `residual` are read before they are
// written, so that y may be the same.
Tensor convolve_each(const Result& result, const Convolution& conv,
                     const std::function<MakeRows(std::int64_t image)>& make_rows,
                     const Band& band) {
  const auto one = [](const Tensor& all, std::int64_t i) {
    return all.defined() ? all.narrow(0, i, 1) : all;
  };
  const auto dtype = dtype_to_convolve(result.y);
  auto typed = conv;
  typed.weight_OIKK = conv.weight_OIKK.to(dtype);
  typed.bias_O = conv.bias_O.to(dtype);
  for (std::int64_t i = 0; i < result.y.size(0); ++i)
    convolve_in_bands(make_rows(i), typed, {one(result.y, i), one(result.residual, i)}, band);
  return result.y;
}

// ------------------------------------------------------------------------------- group norm

struct Moments {
  double count = 0, mean = 0, squares = 0;  // of deviations from the mean

  // Chan, Golub and LeVeque, 1979.
  void add(const Moments& more) {
    const double all = count + more.count, delta = more.mean - mean;
    if (all == 0) return;
    squares += more.squares + delta * delta * count * more.count / all;
    mean += delta * more.count / all;
    count = all;
  }
};

// Channel c of the normed image is x * scale[c] + shift[c].
struct Affine {
  std::vector<float> scale, shift;
};

class Planes {  // of one image, each dense
 public:
  explicit Planes(const Tensor& x_CHW)
      : data_(static_cast<char*>(const_cast<void*>(x_CHW.const_data_ptr()))),
        plane_(x_CHW.stride(0) * std::int64_t(x_CHW.element_size())),
        row_(x_CHW.stride(1) * std::int64_t(x_CHW.element_size())) {}
  char* row(std::int64_t channel, std::int64_t row) const {
    return data_ + channel * plane_ + row * row_;
  }

 private:
  char* data_;
  std::int64_t plane_, row_;
};

Moments moments_of(const Tensor& x_CHW, RowRange channels) {
  const Planes planes(x_CHW);
  const auto height = x_CHW.size(1), width = x_CHW.size(2);
  const auto& kernels = kernels_of(x_CHW);
  Moments all;
  for (auto c = channels.begin; c < channels.begin + channels.count; ++c)
    for (std::int64_t r = 0; r < height; ++r) {
      float mean = 0, squares = 0;
      kernels.moments(planes.row(c, r), width, &mean, &squares);
      all.add({.count = double(width), .mean = mean, .squares = squares});
    }
  return all;
}

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
        silu(from.row(c, rows.begin + r), affine.scale[std::size_t(c)],
             affine.shift[std::size_t(c)], to.row(c, r), x_CHW.size(2));
  });
}

}  // namespace

bool convolves(const Tensor& x, const Convolution& conv) {
  const bool is_float = x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16;
  return x.is_cpu() && is_float && x.dim() == 4 && x.numel() > 0 && conv.stride == 1 &&
         conv.weight_OIKK.scalar_type() == x.scalar_type() &&
         conv.weight_OIKK.size(1) == x.size(1) && conv.bias_O.numel() == conv.weight_OIKK.size(0) &&
         conv.weight_OIKK.size(2) == 2 * conv.padding + 1;
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
  const std::int64_t size[] = {2 * x.size(2), 2 * x.size(3)};
  const auto make_rows = [&](std::int64_t i) -> MakeRows {
    return [one = x.narrow(0, i, 1)](RowRange rows, const Tensor& to) {
      const auto first = rows.begin / 2, last = (rows.begin + rows.count + 1) / 2;
      const auto some = rows_of(one, {first, last - first});
      const auto doubled = some.repeat_interleave(2, 2).repeat_interleave(2, 3);
      to.copy_(rows_of(doubled, {rows.begin - 2 * first, rows.count}));
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
  if (!residual)
    return convolve_each({empty_result(x, conv, x.sizes().slice(2)), {}}, conv, make_rows, band);
  const auto& added = residual->x_BCHW;
  check(added.size(0) == x.size(0) && added.size(1) == conv.weight_OIKK.size(0) &&
            added.sizes().slice(2) == x.sizes().slice(2),
        "an image of shape ", added.sizes(), " cannot be added to a convolution of ", x.sizes());
  const bool is_reused = residual->memory == ImageResidual::Memory::kReused;
  return convolve_each({is_reused ? added : at::empty_like(added), added}, conv, make_rows, band);
}

}  // namespace braid::ops::cpu
