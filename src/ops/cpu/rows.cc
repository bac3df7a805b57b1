#include "ops/cpu/cpu.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "ops/cpu/tensor_rows.h"

namespace braid::ops::cpu {
namespace {

constexpr double kNormEps = 1e-6;
// Elements worth a thread.
constexpr std::int64_t kGrain = 16'384;

// The address of the row for batch b and token l, or of the first of its heads.
class Rows {
 public:
  explicit Rows(const Tensor& x)  // [B L C] or [B L H D]
      : data_(static_cast<char*>(const_cast<void*>(x.const_data_ptr()))),
        batch_(x.size(0) == 1 ? 0 : x.stride(0) * x.element_size()),
        token_(x.size(1) == 1 ? 0 : x.stride(1) * x.element_size()) {}
  char* at(std::int64_t b, std::int64_t l) const { return data_ + b * batch_ + l * token_; }

 private:
  char* data_;
  std::int64_t batch_, token_;
};

// The heads of a token, of [B L H D] to as large a tensor.
class HeadsOfTokens {
 public:
  HeadsOfTokens(const Tensor& x_BLHD, const Tensor& y_BLHD)
      : x_(x_BLHD),
        y_(y_BLHD),
        first_{.x = nullptr,
               .y = nullptr,
               .x_step = x_BLHD.stride(2),
               .y_step = y_BLHD.stride(2),
               .count = x_BLHD.size(2),
               .width = x_BLHD.size(3),
               .to_next = x_BLHD.stride(1)} {}
  HeadRows at(std::int64_t b, std::int64_t l) const {
    auto heads = first_;
    heads.x = x_.at(b, l);
    heads.y = y_.at(b, l);
    return heads;
  }

 private:
  Rows x_, y_;
  HeadRows first_;
};

// Calls body(batch, token) for all of [B L], on as many threads as the work is worth.
template <class Body>
void for_each_row(std::int64_t batches, std::int64_t tokens, std::int64_t width, Body body) {
  const auto grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, width));
  at::parallel_for(0, batches * tokens, grain, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) body(i / tokens, i % tokens);
  });
}

// x with `width` more elements per row, written by fill(batch, token, to).
template <class Fill>
Tensor joined(const Tensor& x_BLC, std::int64_t width, Fill fill) {
  const auto left = x_BLC.size(2);
  const auto y = at::empty({x_BLC.size(0), x_BLC.size(1), left + width}, x_BLC.options());
  const Rows x(x_BLC), out(y);
  const auto left_bytes = left * x_BLC.element_size();
  for_each_row(x_BLC.size(0), x_BLC.size(1), left + width, [&](std::int64_t b, std::int64_t l) {
    std::memcpy(out.at(b, l), x.at(b, l), std::size_t(left_bytes));
    fill(b, l, out.at(b, l) + left_bytes);
  });
  return y;
}

Tensor normed(const Tensor& x, const Tensor& weight_C, double eps, RowKernels::RmsNorm* norm) {
  const auto dense = x.contiguous(), weight = weight_C.contiguous();
  const auto y = at::empty_like(dense);
  const auto width = x.size(-1);
  const Rows from(dense.view({1, -1, width})), to(y.view({1, -1, width}));
  for_each_row(1, x.numel() / std::max<std::int64_t>(1, width), width,
               [&](std::int64_t b, std::int64_t l) {
                 norm(from.at(b, l), weight.const_data_ptr(), to.at(b, l), width, float(eps));
               });
  return y;
}

}  // namespace

bool supports(const Tensor& x) {
  return x.is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16) &&
         x.dim() >= 2 && (x.stride(-1) == 1 || x.size(-1) == 1);
}

Tensor gelu(const Tensor& x) {
  const auto dense = x.contiguous();
  auto y = at::empty_like(dense);
  const auto size = x.element_size();
  const auto* const from = static_cast<const char*>(dense.const_data_ptr());
  auto* const to = static_cast<char*>(y.mutable_data_ptr());
  const auto& kernels = kernels_of(x);
  at::parallel_for(0, x.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    kernels.gelu(from + begin * size, to + begin * size, end - begin);
  });
  return y;
}

Tensor modulated_norm(const Tensor& x_BLC, const Modulation& m) {
  const auto width = x_BLC.size(2);
  const auto y = at::empty(x_BLC.sizes(), x_BLC.options());
  const Rows x(x_BLC), scale(m.scale), shift(m.shift), out(y);
  const auto& kernels = kernels_of(x_BLC);
  for_each_row(x_BLC.size(0), x_BLC.size(1), width, [&](std::int64_t b, std::int64_t l) {
    kernels.modulated_norm(x.at(b, l), scale.at(b, 0), shift.at(b, 0), out.at(b, l), width,
                           float(kNormEps));
  });
  return y;
}

Tensor gated_residual(const Tensor& residual_BLC, const Tensor& gate_B1C, const Tensor& y_BLC) {
  const auto sum = at::empty(y_BLC.sizes(), y_BLC.options());
  const Rows residual(residual_BLC), gate(gate_B1C), y(y_BLC), out(sum);
  const auto& kernels = kernels_of(y_BLC);
  for_each_row(y_BLC.size(0), y_BLC.size(1), y_BLC.size(2), [&](std::int64_t b, std::int64_t l) {
    kernels.gated_residual(residual.at(b, l), gate.at(b, 0), y.at(b, l), out.at(b, l),
                           y_BLC.size(2));
  });
  return sum;
}

Tensor joined_gelu(const Tensor& x_BLC, const Tensor& y_BLC) {
  const Rows y(y_BLC);
  const auto& kernels = kernels_of(x_BLC);
  return joined(x_BLC, y_BLC.size(2), [&](std::int64_t b, std::int64_t l, char* to) {
    kernels.gelu(y.at(b, l), to, y_BLC.size(2));
  });
}

Tensor joined_swiglu(const Tensor& x_BLC, const Tensor& gate_BLC, const Tensor& up_BLC) {
  const Rows gate(gate_BLC), up(up_BLC);
  const auto& kernels = kernels_of(x_BLC);
  return joined(x_BLC, up_BLC.size(2), [&](std::int64_t b, std::int64_t l, char* to) {
    kernels.swiglu(gate.at(b, l), up.at(b, l), to, up_BLC.size(2));
  });
}

Tensor rms_norm(const Tensor& x, const Tensor& weight_C, double eps) {
  return normed(x, weight_C, eps, kernels_of(x).rms_norm);
}

Tensor llama_rms_norm(const Tensor& x, const Tensor& weight_C, double eps) {
  return normed(x, weight_C, eps, kernels_of(x).llama_rms_norm);
}

Tensor zero_centred_rms_norm(const Tensor& x, const Tensor& weight_C, double eps) {
  const auto dense = x.contiguous(), weight = weight_C.to(at::kFloat).contiguous();
  const auto y = at::empty_like(dense);
  const auto width = x.size(-1);
  const Rows from(dense.view({1, -1, width})), to(y.view({1, -1, width}));
  const auto& kernels = kernels_of(x);
  for_each_row(1, x.numel() / std::max<std::int64_t>(1, width), width,
               [&](std::int64_t b, std::int64_t l) {
                 kernels.zero_centred_rms_norm(from.at(b, l), weight.const_data_ptr<float>(),
                                               nullptr, nullptr, to.at(b, l), width, float(eps));
               });
  return y;
}

Tensor modulated_rms_norm(const Tensor& x_BLC, const Tensor& weight_C, const Modulation& m,
                          double eps) {
  const auto width = x_BLC.size(2);
  const auto weight = weight_C.to(at::kFloat).contiguous();
  const auto y = at::empty(x_BLC.sizes(), x_BLC.options());
  const Rows x(x_BLC), scale(m.scale), shift(m.shift), out(y);
  const auto& kernels = kernels_of(x_BLC);
  for_each_row(x_BLC.size(0), x_BLC.size(1), width, [&](std::int64_t b, std::int64_t l) {
    kernels.zero_centred_rms_norm(x.at(b, l), weight.const_data_ptr<float>(), scale.at(b, 0),
                                  shift.at(b, 0), out.at(b, l), width, float(eps));
  });
  return y;
}

Tensor sigmoid_gated(const Tensor& x_BLC, const Tensor& gate_BLC) {
  const auto width = x_BLC.size(2);
  const auto y = at::empty(x_BLC.sizes(), x_BLC.options());
  const Rows x(x_BLC), gate(gate_BLC), out(y);
  const auto& kernels = kernels_of(x_BLC);
  for_each_row(x_BLC.size(0), x_BLC.size(1), width, [&](std::int64_t b, std::int64_t l) {
    kernels.sigmoid_gated(gate.at(b, l), x.at(b, l), out.at(b, l), width);
  });
  return y;
}

Tensor rotate_halves(const Tensor& x_BLHD, const HalfSplitRope& rope) {
  const auto heads = x_BLHD.size(2), width = x_BLHD.size(3);
  const auto y = at::empty(x_BLHD.sizes(), x_BLHD.options());
  const HeadsOfTokens rows(x_BLHD, y);
  const Rows cos(rope.cos.unsqueeze(0)), sin(rope.sin.unsqueeze(0));
  const auto& kernels = kernels_of(x_BLHD);
  auto* const rotate = rope.cos.scalar_type() == x_BLHD.scalar_type() ? kernels.rotate_halves
                                                                      : kernels.rotate_halves_wide;
  for_each_row(x_BLHD.size(0), x_BLHD.size(1), heads * width, [&](std::int64_t b, std::int64_t l) {
    rotate(rows.at(b, l), cos.at(0, l), sin.at(0, l));
  });
  return y;
}

Tensor swiglu(const Tensor& gate_BLC, const Tensor& up_BLC) {
  const auto width = up_BLC.size(2);
  const auto y = at::empty(up_BLC.sizes(), up_BLC.options());
  const Rows gate(gate_BLC), up(up_BLC), out(y);
  const auto& kernels = kernels_of(up_BLC);
  for_each_row(up_BLC.size(0), up_BLC.size(1), width, [&](std::int64_t b, std::int64_t l) {
    kernels.swiglu(gate.at(b, l), up.at(b, l), out.at(b, l), width);
  });
  return y;
}

Tensor normed_rotated(std::span<const NormedHeads> parts, double eps, const Rope& rope) {
  const auto& first = parts.front().x_BLHD;
  std::int64_t tokens = 0;
  for (const auto& part : parts) tokens += part.x_BLHD.size(1);
  const auto heads = first.size(2), width = first.size(3);
  const auto cos = rope.cos.contiguous(), sin = rope.sin.contiguous();
  const auto result = at::empty({first.size(0), tokens, heads, width}, first.options());
  const auto& kernels = kernels_of(first);
  std::int64_t done = 0;
  for (const auto& part : parts) {
    const auto& x = part.x_BLHD;
    const auto weight = part.weight_D.to(at::kFloat).contiguous();
    const auto y = result.narrow(1, done, x.size(1));
    const HeadsOfTokens rows(x, y);
    const auto* const cosines = cos.const_data_ptr<float>() + done * width;
    const auto* const sines = sin.const_data_ptr<float>() + done * width;
    for_each_row(x.size(0), x.size(1), heads * width, [&](std::int64_t b, std::int64_t l) {
      kernels.norm_rotate(rows.at(b, l), weight.const_data_ptr<float>(), cosines + l * width,
                          sines + l * width, float(eps));
    });
    done += x.size(1);
  }
  return result;
}

}  // namespace braid::ops::cpu
