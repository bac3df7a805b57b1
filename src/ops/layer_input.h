// Tokens on their way into a dense layer.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

#include "weights/matrix.h"

namespace braid::ops {

using at::Tensor;

// What a layer's product reads. Whoever makes float8 codes in passing saves the layer a kernel that
// reads the numbers and writes the codes.
enum class InputForm { kNumbers, kFloat8 };

// Tokens [.. C]: numbers; or codes of bfloat16 numbers and a scale for each token, as
// quantize_rows() makes them of these numbers; or numbers in two parts, the first and the last of
// the C, which were not copied behind one another.
struct LayerInput {
  LayerInput(Tensor numbers) : x(std::move(numbers)) {}
  LayerInput(Tensor codes, Tensor scales) : x(std::move(codes)), scales_M1(std::move(scales)) {}
  static LayerInput in_parts(Tensor first, Tensor last) {
    LayerInput in(std::move(first));
    in.last = std::move(last);
    return in;
  }

  bool is_quantized() const { return scales_M1.defined(); }
  bool is_in_parts() const { return last.defined(); }
  void free() { *this = LayerInput(Tensor()); }

  Tensor x;
  Tensor scales_M1 = {};
  Tensor last = {};
};

// How linear() (ops.h) reads tokens like `x`, whatever their width.
InputForm input_form(const Tensor& x, const Matrix& weight_NC);
// Whether it also takes them in parts: a product of each with its columns of the weight, the second
// added to the first, which is rounded.
bool takes_parts(const Tensor& x, const Matrix& weight_NC);

}  // namespace braid::ops
