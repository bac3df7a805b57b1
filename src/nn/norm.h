// Normalisations with weights.
#pragma once

#include "ops/ops.h"
#include "weights/weights.h"

namespace braid {

// (x - mean) / sqrt(variance + eps) * weight + bias over the last dim.
class LayerNorm {
 public:
  LayerNorm(const Weights& w, std::int64_t width, double eps);
  Tensor operator()(const Tensor& x) const;

 private:
  Tensor weight_, bias_;
  double eps_;
};

class RmsNorm {
 public:
  RmsNorm(const Weights& w, std::int64_t width, double eps)
      : weight_(w.tensor("weight", {width})), eps_(eps) {}
  Tensor operator()(const Tensor& x) const { return ops::rms_norm(x, weight_, eps_); }
  const Tensor& weight() const { return weight_; }

 private:
  Tensor weight_;
  double eps_;
};

// RmsNorm with other rounding: ops::llama_rms_norm.
class LlamaRmsNorm {
 public:
  LlamaRmsNorm(const Weights& w, std::int64_t width, double eps)
      : weight_(w.tensor("weight", {width})), eps_(eps) {}
  Tensor operator()(const Tensor& x) const { return ops::llama_rms_norm(x, weight_, eps_); }

 private:
  Tensor weight_;
  double eps_;
};

// ops::modulated_norm() with an eps that may differ from its 1e-6.
Tensor modulated_norm(const Tensor& x_BLC, const Modulation& modulation, double eps);

}  // namespace braid
