// Tokens on their way into a dense layer.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

namespace braid::ops {

using at::Tensor;

// What a layer's product reads. Whoever makes float8 codes in passing saves the layer a kernel that
// reads the numbers and writes the codes.
enum class InputForm { kNumbers, kFloat8 };

// Tokens [.. C]: numbers; or codes of bfloat16 numbers and a scale for each token, as
// quantize_rows() makes them of these numbers.
struct LayerInput {
  LayerInput(Tensor numbers) : x(std::move(numbers)) {}
  LayerInput(Tensor codes, Tensor scales) : x(std::move(codes)), scales_M1(std::move(scales)) {}

  bool is_coded() const { return scales_M1.defined(); }

  Tensor x;
  Tensor scales_M1 = {};
};

}  // namespace braid::ops
