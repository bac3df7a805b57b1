// Dense layers for each form of weight.
#include "weights/codes/int8.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "ops/cpu/int8.h"
#include "ops/cpu/linear.h"
#include "ops/cpu/packed.h"
#include "ops/gpu/gpu.h"
#include "ops/ops.h"
#include "ops/record.h"
#include "ops/reference.h"
#include "weights/codes/as_stored.h"
#include "weights/codes/rotation.h"

namespace braid::ops {
namespace {

// A GPU's int8 product needs at least this many tokens, and widths that are multiples of 8.
constexpr std::int64_t kFewestTokens = 32, kWidths = 8;

std::int64_t next_width(std::int64_t width) { return (width + kWidths - 1) / kWidths * kWidths; }

bool has_loops_for(const Tensor& x) {
  return x.is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

// Some rows at a time, so that few are in float32 at once.
void widen_packed(const Matrix& weight_NC, const Tensor& out_NC) {
  constexpr std::int64_t kNumbersAtOnce = std::int64_t(1) << 22;
  const auto rows = out_NC.size(0);
  const auto at_once = std::max<std::int64_t>(1, kNumbersAtOnce / out_NC.size(1));
  for (std::int64_t row = 0; row < rows; row += at_once) {
    const auto count = std::min(at_once, rows - row);
    out_NC.narrow(0, row, count).copy_(decoded(rows_of(weight_NC, row, count), at::kFloat));
  }
}

Tensor widened(const Matrix& weight_NC, const Tensor& x, Scratch& scratch) {
  const auto dtype = x.scalar_type();
  const bool is_widened_by_rows =
      weight_NC.is_packed() || (weight_NC.is_rotated() && !has_loops_for(x));
  if (is_widened_by_rows) {
    const auto out =
        scratch.take({weight_NC.values_NC.size(0), weight_NC.inputs()}, dtype, x.device());
    widen_packed(weight_NC, out);
    return out;
  }
  const bool on_gpu =
      gpu::supports(x) && (!weight_NC.coding || weight_NC.form == Quantize::kFloat8);
  if (!on_gpu && !has_loops_for(x)) return dequantize(weight_NC, dtype);
  const auto out =
      scratch.take({weight_NC.values_NC.size(0), weight_NC.inputs()}, dtype, x.device());
  if (on_gpu)
    gpu::widen(weight_NC, out);
  else
    weight_NC.coding ? decode_on_cpu(weight_NC, out) : widen_on_cpu(weight_NC, out);
  return out;
}

// Pads rows and columns with zeros to the given size.
Tensor padded(const Tensor& codes, std::int64_t rows, std::int64_t columns) {
  if (codes.size(0) == rows && codes.size(1) == columns) return codes;
  return at::constant_pad_nd(codes, {0, columns - codes.size(1), 0, rows - codes.size(0)});
}

// Sums of products of codes [M N], int32. LibTorch's product on a CPU misreads a weight of a single
// column, as both strides of its transpose are 1: a column of zeros is added.
Tensor sums_of(const Tensor& codes_MC, const Tensor& weight_NC) {
  const auto tokens = codes_MC.size(0), outputs = weight_NC.size(0);
  if (codes_MC.is_cpu()) {
    const auto width = std::max<std::int64_t>(2, codes_MC.size(1));
    return at::_int_mm(padded(codes_MC, tokens, width), padded(weight_NC, outputs, width).t());
  }
  const auto width = next_width(codes_MC.size(1));
  const auto x = padded(codes_MC, std::max(tokens, kFewestTokens), width);
  const auto w = padded(weight_NC, next_width(outputs), width);
  return at::_int_mm(x, w.t()).narrow(0, 0, tokens).narrow(1, 0, outputs);
}

Tensor scaled(const ScaledSums& y, at::ScalarType dtype) {
  const auto by_token = (y.sums_MN * y.token_scales_M1).to(dtype);
  auto by_row = by_token * y.row_scales_N1.flatten();
  if (y.bias_N) by_row.add_(*y.bias_N);
  return by_row.to(dtype);
}

ScaledSums multiply_codes(const Matrix& tokens, const Matrix& weight_NC,
                          const std::optional<Tensor>& bias_N) {
  std::optional<Tensor> bias;
  if (bias_N) bias = bias_N->to(at::kFloat).contiguous();
  return {.sums_MN = sums_of(tokens.values_NC, weight_NC.values_NC.view(at::kChar)),
          .token_scales_M1 = tokens.scales_N1,
          .row_scales_N1 = weight_NC.scales_N1.to(at::kFloat).contiguous(),
          .bias_N = bias};
}

Record recorded(const char* name, const LayerInput& in, const Matrix& weight_NC) {
  const auto width = in.x.size(-1);
  const auto inputs = in.is_in_parts() ? width + in.last.size(-1) : width;
  return {name,
          {in.x.numel() / std::max<std::int64_t>(1, width), inputs, weight_NC.values_NC.size(0)}};
}

Tensor with_rows(const Tensor& x, const Tensor& y_MN) {
  auto shape = x.sizes().vec();
  shape.back() = y_MN.size(1);
  return y_MN.view(shape);
}

// The definition: tokens are rotated as the weight's numbers were, in float32.
Tensor as_weight_is(const Tensor& x_MC, const Matrix& weight_NC) {
  if (!weight_NC.is_rotated()) return x_MC;
  return rotated(in_whole_groups(x_MC, weight_NC).to(at::kFloat),
                 weight_NC.coding->rotated_together);
}

Matrix quantized_on_gpu(const Tensor& x_MC, const Matrix& weight_NC) {
  if (!weight_NC.is_rotated()) return gpu::quantize_rows(x_MC, Quantize::kInt8);
  const auto together = weight_NC.coding->rotated_together;
  const auto whole = in_whole_groups(x_MC, weight_NC);
  if (gpu::rotates_rows(whole, together))
    return gpu::quantize_rows(whole, Quantize::kInt8, together);
  return gpu::quantize_rows(rotated(whole.to(at::kFloat), together), Quantize::kInt8);
}

Tensor linear_dynamic(const Tensor& x, const Matrix& weight_NC, const std::optional<Tensor>& bias_N,
                      const Tensor& room) {
  const auto x_MC = x.reshape({-1, x.size(-1)});
  const bool on_gpu = gpu::supports(x_MC) && gpu::keeps_rows(x_MC);
  const auto tokens = on_gpu ? quantized_on_gpu(x_MC, weight_NC)
                             : quantize_rows(as_weight_is(x_MC, weight_NC), Quantize::kInt8);
  const auto y = multiply_codes(tokens, weight_NC, bias_N);
  if (!on_gpu && !has_loops_for(x)) return with_rows(x, scaled(y, x.scalar_type()));
  const auto out = on_gpu && room.defined() ? room.view(y.sums_MN.sizes())
                                            : at::empty(y.sums_MN.sizes(), x.options());
  on_gpu ? gpu::scale(y, out) : scale_on_cpu(y, out);
  return with_rows(x, out);
}

// y is a product that nothing else uses. The sum is rounded once; the addend is not rounded first.
Tensor plus_product(Tensor y, const Tensor& low, const Tensor& up_NR) {
  y.view({-1, y.size(-1)}).addmm_(low.view({-1, low.size(-1)}), up_NR.t());
  return y;
}

// The weight's own low-rank product, of smoothed tokens.
Tensor plus_own(const Tensor& y, const Tensor& smoothed, const Matrix& weight_NC) {
  if (!weight_NC.up_NR.defined()) return y;
  return plus_product(y, at::linear(smoothed, weight_NC.down_RC), weight_NC.up_NR);
}

Tensor plus_low_rank(const Tensor& y, const Tensor& x, const Matrix& weight_NC) {
  if (!weight_NC.has_low_rank()) return y;
  const auto& low_rank = *weight_NC.low_rank;
  return plus_product(y, at::linear(x, low_rank.down_RC).mul_(low_rank.scales_R), low_rank.up_NR);
}

Tensor smoothed(const Tensor& x, const Matrix& weight_NC) {
  return weight_NC.smoothing_1C.defined() ? x / weight_NC.smoothing_1C.flatten() : x;
}

// A GPU's library adds a bias at the end of a product only to dense tokens; others it copies, and
// adds the bias in a pass of its own.
Tensor dense_on_gpu(const Tensor& x) { return x.is_cuda() ? x.contiguous() : x; }

Tensor dense_product(const Tensor& x, const Tensor& weight_NC, const std::optional<Tensor>& bias_N,
                     const Tensor& room) {
  if (!x.is_cuda() || !room.defined()) return at::linear(dense_on_gpu(x), weight_NC, bias_N);
  const auto x_MC = x.reshape({-1, x.size(-1)});
  auto y_MN = room.view({-1, room.size(-1)});
  bias_N ? at::addmm_out(y_MN, *bias_N, x_MC, weight_NC.t())
         : at::mm_out(y_MN, x_MC, weight_NC.t());
  return room;
}

Tensor weight_product(const Tensor& x, const Matrix& weight_NC, const std::optional<Tensor>& bias_N,
                      Scratch& scratch, const Tensor& room) {
  if (cpu::supports_product(x, weight_NC)) return cpu::linear(x, weight_NC, bias_N);
  switch (weight_NC.form) {
    case Quantize::kNone:
      if (gpu::supports_decoding(x, weight_NC))
        return with_rows(
            x, gpu::linear_of_stored(x.reshape({-1, x.size(-1)}), weight_NC, bias_N, scratch));
      if (weight_NC.coding) break;
      return dense_product(x, weight_NC.values_NC, bias_N, room);
    case Quantize::kInt8Dynamic:
      // rotated codes are those that a file brought
      if (weight_NC.is_rotated() && !gpu::supports_int8_products(x)) break;
      return linear_dynamic(x, weight_NC, bias_N, room);
    case Quantize::kFloat8:
      if (gpu::multiplies_float8(x, weight_NC))
        return with_rows(x, gpu::linear_float8(x, weight_NC, bias_N, room));
      break;
    case Quantize::kInt8:
    case Quantize::kInt8V1:
      break;
  }
  return dense_product(x, widened(weight_NC, x, scratch), bias_N, room);
}

Tensor reference_product(const Tensor& x, const Matrix& weight_NC,
                         const std::optional<Tensor>& bias_N) {
  const auto dtype = x.scalar_type();
  if (weight_NC.is_packed()) return at::linear(x, decoded(weight_NC, dtype), bias_N);
  if (weight_NC.form != Quantize::kInt8Dynamic)
    return at::linear(x, dequantize(weight_NC, dtype), bias_N);
  const auto tokens =
      quantize_rows(as_weight_is(x.reshape({-1, x.size(-1)}), weight_NC), Quantize::kInt8);
  return with_rows(x, scaled(multiply_codes(tokens, weight_NC, bias_N), dtype));
}

}  // namespace

Tensor reference::linear(const Tensor& x, const Matrix& weight_NC,
                         const std::optional<Tensor>& bias_N) {
  const auto t = smoothed(x, weight_NC);
  return plus_low_rank(plus_own(reference_product(t, weight_NC, bias_N), t, weight_NC), x,
                       weight_NC);
}

namespace {

// One product of the tokens as they are.
bool is_plain(const Matrix& weight_NC) {
  return !weight_NC.has_low_rank() && !weight_NC.smoothing_1C.defined() &&
         !weight_NC.up_NR.defined();
}

Tensor linear_of_parts(const LayerInput& in, const Matrix& weight_NC,
                       const std::optional<Tensor>& bias_N, const Tensor& room) {
  const auto width = in.x.size(-1);
  const auto& values = weight_NC.values_NC;
  return plus_product(dense_product(in.x, values.narrow(1, 0, width), bias_N, room), in.last,
                      values.narrow(1, width, in.last.size(-1)));
}

}  // namespace

InputForm input_form(const Tensor& x, const Matrix& weight_NC) {
  return is_plain(weight_NC) && gpu::multiplies_float8(x, weight_NC) ? InputForm::kFloat8
                                                                     : InputForm::kNumbers;
}

bool takes_parts(const Tensor& x, const Matrix& weight_NC) {
  const bool is_dense = weight_NC.form == Quantize::kNone && !weight_NC.coding;
  return x.is_cuda() && is_dense && is_plain(weight_NC) &&
         weight_NC.values_NC.scalar_type() == x.scalar_type();
}

Tensor linear(const LayerInput& in, const Matrix& weight_NC, const std::optional<Tensor>& bias_N,
              Scratch& scratch, const Tensor& room) {
  const auto record = recorded("braid::linear", in, weight_NC);
  if (in.is_in_parts()) return linear_of_parts(in, weight_NC, bias_N, room);
  if (in.is_quantized()) return with_rows(in.x, gpu::linear_float8(in, weight_NC, bias_N, room));
  const auto t = smoothed(in.x, weight_NC);
  const auto y = weight_product(t, weight_NC, bias_N, scratch, room);
  return plus_low_rank(plus_own(y, t, weight_NC), in.x, weight_NC);
}

bool ends_in_gelu(const Tensor& x, const Matrix& weight_NC, const std::optional<Tensor>& bias_N) {
  return gpu::multiplies_with_gelu(x, weight_NC, bias_N);
}

std::pair<Tensor, Tensor> linear_then_gelu(const Tensor& x, const Matrix& weight_NC,
                                           const Tensor& bias_N, std::int64_t plain) {
  const auto record = recorded("braid::linear_then_gelu", x, weight_NC);
  const auto rest = weight_NC.values_NC.size(0) - plain;
  return {dense_product(x, weight_NC.values_NC.narrow(0, 0, plain), bias_N.narrow(0, 0, plain), {}),
          gpu::linear_gelu(x, rows_of(weight_NC, plain, rest), bias_N.narrow(0, plain, rest))};
}

Tensor linear_gelu(const LayerInput& in, const Matrix& weight_NC,
                   const std::optional<Tensor>& bias_N, Scratch& scratch) {
  const auto& x = in.x;
  const auto record = recorded("braid::linear_gelu", in, weight_NC);
  if (in.is_quantized() || in.is_in_parts())
    return ops::gelu(ops::linear(in, weight_NC, bias_N, scratch));
  const bool is_one_loop = cpu::supports_product(x, weight_NC) && !weight_NC.has_low_rank() &&
                           weight_NC.form != Quantize::kInt8Dynamic;
  if (is_one_loop) return cpu::linear(x, weight_NC, bias_N, cpu::Finish::kGelu);
  if (gpu::multiplies_with_gelu(x, weight_NC, bias_N))
    return gpu::linear_gelu(x, weight_NC, *bias_N);
  return ops::gelu(ops::linear(x, weight_NC, bias_N, scratch));
}

}  // namespace braid::ops
