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

class Linear;

// A layer whose output is added, times a gate, to a residual stream.   [B L C], [B 1 C]
struct GatedLayer {
  const Linear& layer;
  Tensor x_BLC;  // its input
  Tensor residual_BLC, gate_B1C;
};

class Linear {
 public:
  // Pulls `weight` [out in] and, unless Bias::kNo, `bias` [out]. If devices share the weights,
  // outputs are made whole as the plan says; the bias is added once.
  Linear(const Weights& w, LinearShape shape);

  // `room` as in ops::linear(); layers whose outputs devices put together leave it alone.
  Tensor operator()(const Tensor& x, const Tensor& room = {}) const;
  Tensor gelu(const Tensor& x) const;
  // ops::gated_residual(residual, gate, (*this)(x)). A sum over devices is rounded once, behind the
  // gate.
  Tensor gated_residual(const Tensor& residual_BLC, const Tensor& gate_B1C,
                        const Tensor& x_BLC) const;

  std::int64_t outputs() const;  // of this device

  // Whether this layer and `other` may run at the same time on two streams: neither communicates,
  // whose order would differ between ranks, nor has a page of its own, whose order is kept for one
  // stream; and they share no scratch memory.
  bool may_run_concurrently(const Linear& other) const;

 private:
  Linear(const Weights& w, const Weights& leaf, LinearShape shape);
  friend std::pair<Tensor, Tensor> apply_both(const Linear&, const Tensor&, const Linear&,
                                              const Tensor&);
  friend Tensor apply_summed(const Linear&, const Tensor&, const Linear&, const Tensor&);
  friend std::pair<Tensor, Tensor> gated_residuals(const GatedLayer&, const GatedLayer&);
  friend std::pair<ops::NormedSum, ops::NormedSum> gated_residual_norms(
      const std::pair<GatedLayer, Modulation>&, const std::pair<GatedLayer, Modulation>&);
  friend std::pair<Tensor, Tensor> summed_residuals(const GatedLayer&, const GatedLayer&);
  Tensor plus_bias(const Tensor& x, const Tensor& room) const;
  Tensor times_weight(const Tensor& x) const;
  bool is_summed_with(const Linear& other) const;
  bool stays_on_its_stream() const;

  Matrix weight_;
  Page page_;
  std::optional<Tensor> bias_;
  std::shared_ptr<Scratch> scratch_;
  Outputs outputs_;
};

// {a(x), b(y)}. If both outputs are sums over devices, one reduction serves both.
std::pair<Tensor, Tensor> apply_both(const Linear& a, const Tensor& x, const Linear& b,
                                     const Tensor& y);

// The gated residuals of two layers, and the norms of these. If both outputs are sums over devices,
// one reduction serves both, and they are rounded once, behind the gate.
std::pair<Tensor, Tensor> gated_residuals(const GatedLayer& a, const GatedLayer& b);
std::pair<ops::NormedSum, ops::NormedSum> gated_residual_norms(
    const std::pair<GatedLayer, Modulation>& a, const std::pair<GatedLayer, Modulation>& b);

// a(x) + b(y). If both outputs are sums over devices, one reduction serves both.
Tensor apply_summed(const Linear& a, const Tensor& x, const Linear& b, const Tensor& y);

}  // namespace braid
