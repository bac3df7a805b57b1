// A dense layer.
#pragma once

#include <optional>

#include "ops/ops.h"
#include "weights/weights.h"

namespace braid {

enum class Bias { kYes, kNo };

struct LinearShape {
  std::int64_t in, out;
  Bias bias = Bias::kYes;
};

class Linear {
 public:
  // Pulls `weight` [out in] and, unless there is none, `bias` [out].
  Linear(const Weights& w, LinearShape shape);

  Tensor operator()(const Tensor& x) const { return ops::linear(x, weight_, bias_); }
  Tensor gelu(const Tensor& x) const { return ops::linear_gelu(x, weight_, bias_); }

 private:
  Tensor weight_;
  std::optional<Tensor> bias_;
};

}  // namespace braid
