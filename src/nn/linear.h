// A dense layer.
#pragma once

#include <optional>
#include <utility>

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
  // Pulls `weight` [out in] and, unless Bias::kNo, `bias` [out]. If devices share the weights,
  // outputs are made whole as the plan says; the bias is added once.
  Linear(const Weights& w, LinearShape shape);

  Tensor operator()(const Tensor& x) const;
  Tensor gelu(const Tensor& x) const;

  // Whether this layer and `other` may run at the same time on two streams: neither communicates,
  // whose order would differ between ranks, nor has a page of its own, whose order is kept for one
  // stream; and they share no scratch memory.
  bool may_run_concurrently(const Linear& other) const;

 private:
  Linear(const Weights& w, const Weights& leaf, LinearShape shape);
  friend std::pair<Tensor, Tensor> apply_both(const Linear&, const Tensor&, const Linear&,
                                              const Tensor&);
  friend Tensor apply_summed(const Linear&, const Tensor&, const Linear&, const Tensor&);
  Tensor plus_bias(const Tensor& x) const;
  Tensor times_weight(const Tensor& x) const;
  Tensor finish(const Tensor& sum) const;
  bool stays_on_its_stream() const;

  Matrix weight_;
  Page page_;
  std::optional<Tensor> bias_;
  std::shared_ptr<Scratch> scratch_;
  Outputs outputs_;
};

// {a(x), b(y)} for x and y [B L C] with the same B, and layers of the same output width. If both
// outputs are sums over devices, one reduction serves both.
std::pair<Tensor, Tensor> apply_both(const Linear& a, const Tensor& x, const Linear& b,
                                     const Tensor& y);

// a(x) + b(y). If both outputs are sums over devices, one reduction serves both.
Tensor apply_summed(const Linear& a, const Tensor& x, const Linear& b, const Tensor& y);

}  // namespace braid
