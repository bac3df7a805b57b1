#include "ops/cpu/code_product.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "ops/cpu/tensor_rows.h"
#include "ops/cpu/transposed_product.h"
#include "ops/kernels/codes.h"

namespace braid::ops::cpu {
namespace {

// Tokens in 8 bits, each with its own scale.
struct Codes {
  Tensor codes_MC;
  std::vector<CodedToken> tokens;
};

Codes quantize(const Layer& l) {
  const auto& x_MC = l.x_MC;
  const auto& weight = l.weight_NC;
  const auto together = weight.is_rotated() ? weight.coding->rotated_together : 0;
  const auto tokens = x_MC.size(0), width = x_MC.size(1);
  Codes result{.codes_MC = at::empty({tokens, width}, at::kChar),
               .tokens = std::vector<CodedToken>(std::size_t(tokens))};
  const auto row_bytes = x_MC.stride(0) * std::int64_t(x_MC.element_size());
  const auto* const x = static_cast<const char*>(x_MC.const_data_ptr());
  auto* const codes = result.codes_MC.mutable_data_ptr<std::int8_t>();
  const auto& kernels = code_kernels(row_type_of(x_MC));
  at::parallel_for(0, tokens, 16, [&](std::int64_t begin, std::int64_t end) {
    const Buffer<float> numbers(together > 0 ? width : 1);
    const RotatedRow row{.count = width, .together = together, .numbers = numbers.at(0)};
    for (auto m = begin; m < end; ++m) {
      const auto* const from = x + m * row_bytes;
      auto* const to = codes + m * width;
      result.tokens[std::size_t(m)] = together > 0 ? kernels.quantize_rotated(from, row, to)
                                                   : kernels.quantize(from, width, to);
    }
  });
  return result;
}

// Writes the numbers that sums of codes stand for.
std::function<void(std::int64_t, Range, std::int32_t*)> scaled_to(const Layer& l, const Codes& x) {
  return [&l, &x, &k = code_kernels(row_type_of(l.y_MN)), scales = l.scales.const_data_ptr<float>(),
          bias = l.bias.const_data_ptr<float>()](std::int64_t m, Range n, std::int32_t* sums) {
    k.scale({.sums = sums,
             .token_scale = x.tokens[std::size_t(m)].scale,
             .row_scales = scales + n.begin,
             .bias = bias + n.begin,
             .count = n.count},
            l.write.place(m, n));
  };
}

void multiply_codes_transposed(const Layer& l, const Codes& x) {
  const RowsOf<std::int8_t> codes(x.codes_MC), weight(l.weight_NC.values_NC);
  const auto& k = l.kernels;
  run(TransposedProduct<std::int32_t>{.kernels = &k,
                                      .tokens = l.x_MC.size(0),
                                      .outputs = l.y_MN.size(1),
                                      .inputs = l.x_MC.size(1),
                                      .first = nullptr,
                                      .pack =
                                          [&](Range m, Range c, std::int32_t* panel) {
                                            k.pack_codes(codes.row(m.begin, c.begin), codes.stride,
                                                         m.count, c.count, panel);
                                          },
                                      .take = rows_of(weight, k.take_codes),
                                      .finish = scaled_to(l, x)});
}

}  // namespace

void multiply_codes(const Layer& l) {
  const auto x = quantize(l);
  const auto& k = l.kernels;
  if (k.is_transposed()) return multiply_codes_transposed(l, x);
  const RowsOf<std::int8_t> codes(x.codes_MC), weight(l.weight_NC.values_NC);
  run(Product<std::int32_t>{
      .kernels = &k,
      .tokens = l.x_MC.size(0),
      .outputs = l.y_MN.size(1),
      .inputs = l.x_MC.size(1),
      .x = stored_words<std::int32_t>(codes, l.x_MC.size(1), k.codes_per_word),
      .take = rows_of(codes, k.take_codes),
      .pack =
          [&](Range n, Range c, std::int32_t* panel) {
            k.pack_codes(weight.row(n.begin, c.begin), weight.stride, n.count, c.count, panel);
          },
      .begin =
          [&](std::int64_t m, Range n, std::int32_t* sums) {
            std::fill_n(sums, n.count, -k.code_shift * x.tokens[std::size_t(m)].total);
          },
      .finish = scaled_to(l, x)});
}

}  // namespace braid::ops::cpu
