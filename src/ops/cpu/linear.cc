#include "ops/cpu/linear.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "base/error.h"
#include "ops/cpu/code_product.h"
#include "ops/cpu/layer_operands.h"
#include "ops/cpu/packed.h"
#include "ops/cpu/tensor_rows.h"
#include "ops/cpu/transposed_product.h"
#include "weights/codes/as_stored.h"

namespace braid::ops::cpu {
namespace {

// Decodes a few rows at a time, so that their numbers stay in the L1 cache.
void pack_decoded(const CodedRows& rows, Range n, Range c, const ProductKernels& k, float* panel) {
  thread_local std::vector<std::uint16_t> numbers;
  numbers.resize(std::size_t(n.count * c.count));
  for (std::int64_t r = 0; r < n.count; ++r)
    rows.as_bfloat16(n.begin + r, c, numbers.data() + r * c.count);
  k.pack_halves(numbers.data(), c.count, n.count, c.count, panel);
}

std::function<void(Range, Range, float*)> panels_of(const Matrix& weight_NC, const Tensor& scales,
                                                    const ProductKernels& k) {
  const auto& values = weight_NC.values_NC;
  if (weight_NC.coding)
    return [rows = CodedRows(weight_NC), &k](Range n, Range c, float* panel) {
      pack_decoded(rows, n, c, k, panel);
    };
  if (weight_NC.form != Quantize::kNone)
    return [w = RowsOf<std::int8_t>(values), s = scales.const_data_ptr<float>(), &k](
               Range n, Range c, float* panel) {
      k.pack_scaled_codes(w.row(n.begin, c.begin), w.stride, s + n.begin, n.count, c.count, panel);
    };
  return [w = RowsOf<std::uint16_t>(values), &k](Range n, Range c, float* panel) {
    k.pack_halves(w.row(n.begin, c.begin), w.stride, n.count, c.count, panel);
  };
}

// ------------------------------------------------------------------------------------- layers

// Rows are decoded directly into the words that are multiplied, pairs of adjacent numbers, while
// the next row's bytes are prefetched.
void take_decoded(const CodedRows& rows, Range n, Range c, float* to, std::int64_t stride) {
  const auto width = round_up(c.count, 2 * ProductKernels::kRun);
  for (std::int64_t i = 0; i < n.count; ++i) {
    auto* const row = reinterpret_cast<std::uint16_t*>(to + i * stride);
    if (i + 1 < n.count) rows.prefetch(n.begin + i + 1, c);
    rows.as_bfloat16(n.begin + i, c, row);
    std::fill(row + c.count, row + width, std::uint16_t(0));
  }
}

// Rows of the weight, as they multiply from the left.
std::function<void(Range, Range, float*, std::int64_t)> rows_of_weight(const Layer& l) {
  const auto& values = l.weight_NC.values_NC;
  if (l.weight_NC.coding)
    return [rows = CodedRows(l.weight_NC)](Range n, Range c, float* to, std::int64_t stride) {
      take_decoded(rows, n, c, to, stride);
    };
  if (l.weight_NC.form == Quantize::kNone)
    return rows_of(RowsOf<std::uint16_t>(values), l.kernels.pack_a);
  return [w = RowsOf<std::int8_t>(values), scales = l.scales.const_data_ptr<float>(),
          take = l.kernels.take_scaled_codes](Range n, Range c, float* to, std::int64_t stride) {
    for (std::int64_t i = 0; i < n.count; ++i)
      take(w.row(n.begin + i, c.begin), scales[n.begin + i], c.count, to + i * stride);
  };
}

void multiply_transposed(const Layer& l) {
  const RowsOf<std::uint16_t> x(l.x_MC);
  run(TransposedProduct<float>{.kernels = &l.kernels,
                               .tokens = l.x_MC.size(0),
                               .outputs = l.y_MN.size(1),
                               .inputs = l.x_MC.size(1),
                               .first = l.bias.const_data_ptr<float>(),
                               .pack =
                                   [&](Range m, Range c, float* panel) {
                                     l.kernels.pack_halves(x.row(m.begin, c.begin), x.stride,
                                                           m.count, c.count, panel);
                                   },
                               .take = rows_of_weight(l),
                               .finish = l.write});
}

void multiply_many(const Layer& l) {
  if (l.kernels.is_transposed()) return multiply_transposed(l);
  const auto* const bias = l.bias.const_data_ptr<float>();
  const RowsOf<std::uint16_t> x(l.x_MC);
  run(Product<float>{.kernels = &l.kernels,
                     .tokens = l.x_MC.size(0),
                     .outputs = l.y_MN.size(1),
                     .inputs = l.x_MC.size(1),
                     .x = stored_words<float>(x, l.x_MC.size(1), l.kernels.halves_per_word),
                     .take = rows_of(x, l.kernels.pack_a),
                     .pack = panels_of(l.weight_NC, l.scales, l.kernels),
                     .begin =
                         [&](std::int64_t, Range n, float* sums) {
                           std::memcpy(sums, bias + n.begin, std::size_t(n.count) * sizeof(float));
                         },
                     .finish = l.write});
}

// The sums [rows] for row n of the weight.
void dot(const Layer& l, const float* x, std::int64_t rows, std::int64_t n, float* sums) {
  const auto& k = l.kernels;
  const auto& values = l.weight_NC.values_NC;
  const auto depth = l.weight_NC.inputs();
  if (l.weight_NC.coding) {
    thread_local std::vector<std::uint16_t> numbers;
    numbers.resize(std::size_t(depth));
    CodedRows(l.weight_NC).as_bfloat16(n, {0, depth}, numbers.data());
    k.dot_halves(x, depth, rows, numbers.data(), depth, sums);
  } else if (l.weight_NC.form != Quantize::kNone)
    k.dot_scaled_codes(x, depth, rows, RowsOf<std::int8_t>(values).row(n),
                       l.scales.const_data_ptr<float>()[n], depth, sums);
  else
    k.dot_halves(x, depth, rows, RowsOf<std::uint16_t>(values).row(n), depth, sums);
}

// For few tokens, the weight is read once and not packed.
void multiply_few(const Layer& l) {
  constexpr std::int64_t kOutputs = 64;  // per task
  const auto x = l.x_MC.to(at::kFloat).contiguous();
  const auto* const bias = l.bias.const_data_ptr<float>();
  const auto rows = x.size(0), outputs = l.y_MN.size(1);
  at::parallel_for(0, blocks_in(outputs, kOutputs), 1, [&](std::int64_t begin, std::int64_t end) {
    const auto first = begin * kOutputs, last = std::min(outputs, end * kOutputs);
    Buffer<float> sums(rows * (last - first)), one(rows);
    for (auto n = first; n < last; ++n) {
      dot(l, x.const_data_ptr<float>(), rows, n, one.at(0));
      for (std::int64_t m = 0; m < rows; ++m)
        *sums.at(m * (last - first) + n - first) = *one.at(m) + bias[n];
    }
    for (std::int64_t m = 0; m < rows; ++m)
      l.write(m, {first, last - first}, sums.at(m * (last - first)));
  });
}

void check_sizes(const Tensor& x, const Matrix& weight_NC, const std::optional<Tensor>& bias_N) {
  const auto& values = weight_NC.values_NC;
  check(x.size(-1) == weight_NC.inputs(), "a weight of shape ", values.sizes(),
        " for an input of shape ", x.sizes());
  check(!bias_N || bias_N->numel() == values.size(0), "a bias of ", bias_N ? bias_N->numel() : 0,
        " numbers for ", values.size(0), " outputs");
  check(weight_NC.form == Quantize::kNone || weight_NC.scales_N1.numel() == values.size(0),
        "codes of ", values.size(0), " rows without a scale for each");
}

void check_dtypes(const Tensor& x, const Matrix& weight_NC) {
  const bool is_dense = weight_NC.form == Quantize::kNone;
  const auto dtype = weight_NC.values_NC.scalar_type();
  check(dtype == (weight_NC.coding ? at::kByte
                  : is_dense       ? at::kBFloat16
                                   : at::kChar) &&
            (is_bfloat16(x) || weight_NC.form == Quantize::kInt8Dynamic),
        "no product of ours of ", x.scalar_type(), " and ", dtype);
}

// A result that the next product reads where it is stored: a cache line is between rows that would
// compete for the same sets of a cache.
Tensor rows_for_product(std::int64_t rows, std::int64_t width, const at::TensorOptions& options) {
  const auto bytes = std::int64_t(options.dtype().itemsize());
  const auto gap = width * bytes % kCacheWay == 0 ? 64 / bytes : 0;
  return at::empty_strided({rows, width}, {width + gap, 1}, options);
}

bool is_float(const Tensor& t) {
  return t.is_cpu() && (t.scalar_type() == at::kFloat || t.scalar_type() == at::kBFloat16);
}

}  // namespace

bool supports_product(const Tensor& x, const Matrix& weight_NC) {
  if (!is_float(x) || weight_NC.values_NC.dim() != 2 || x.numel() == 0) return false;
  if (weight_NC.is_packed()) return false;
  switch (weight_NC.form) {
    case Quantize::kNone:
      if (weight_NC.coding) break;
      return is_bfloat16(x) && is_bfloat16(weight_NC.values_NC) && leads_in_bfloat16();
    case Quantize::kInt8Dynamic:
      return true;
    case Quantize::kInt8:
    case Quantize::kInt8V1:
    case Quantize::kFloat8:
      break;
  }
  return is_bfloat16(x) && leads_in_bfloat16();
}

Tensor linear(const Tensor& x, const Matrix& weight_NC, const std::optional<Tensor>& bias_N,
              Finish finish, const ProductKernels* kernels) {
  const auto outputs = weight_NC.values_NC.size(0);
  check_sizes(x, weight_NC, bias_N);
  check_dtypes(x, weight_NC);
  const bool is_dynamic = weight_NC.form == Quantize::kInt8Dynamic;
  check(!is_dynamic || finish == Finish::kPlain, "codes times codes cannot end in gelu");
  const auto& k = kernels ? *kernels : product_kernels();
  const auto x_MC = is_dynamic ? as_rows(in_whole_groups(as_rows(x), weight_NC)) : as_rows(x);
  const auto y_MN = finish == Finish::kGelu ? rows_for_product(x_MC.size(0), outputs, x.options())
                                            : at::empty({x_MC.size(0), outputs}, x.options());
  const Layer layer{
      .x_MC = x_MC,
      .weight_NC = {.form = weight_NC.form,
                    .values_NC = as_rows(weight_NC.values_NC),
                    .scales_N1 = weight_NC.coding ? weight_NC.scales_N1 : Tensor(),
                    .coding = weight_NC.coding},
      .scales = weight_NC.scales_N1.defined() ? weight_NC.scales_N1.to(at::kFloat).contiguous()
                                              : Tensor(),
      .bias = bias_N ? bias_N->to(at::kFloat).contiguous() : at::zeros({outputs}, at::kFloat),
      .y_MN = y_MN,
      .write = {y_MN, finish, k},
      .kernels = k};
  if (is_dynamic)
    multiply_codes(layer);
  else if (x_MC.size(0) <= k.gemv_rows)
    multiply_few(layer);
  else
    multiply_many(layer);
  auto shape = x.sizes().vec();
  shape.back() = outputs;
  return y_MN.view(shape);
}
}  // namespace braid::ops::cpu
