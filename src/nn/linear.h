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
  ops::LayerInput x;  // [B L ..]
  Tensor residual_BLC, gate_B1C;
};

// The same, with the norm of that residual stream, in the form in which the next layer reads it.
struct NormedLayer {
  GatedLayer gated;
  Modulation norm;
  ops::InputForm form = ops::InputForm::kNumbers;
};

class Linear {
 public:
  // Pulls `weight` [out in] and, unless Bias::kNo, `bias` [out]. If devices share the weights,
  // outputs are made whole as the plan says; the bias is added once.
  Linear(const Weights& w, LinearShape shape);

  // `room` as in ops::linear(); layers whose outputs devices put together leave it alone.
  Tensor operator()(const ops::LayerInput& x, const Tensor& room = {}) const;
  Tensor gelu(const ops::LayerInput& x) const;
  ops::LayerInput gelu(const ops::LayerInput& x, ops::InputForm form) const;
  // The first `plain` outputs of this device, and gelu() of its others, where ends_in_gelu().
  std::pair<Tensor, Tensor> then_gelu(const Tensor& x, std::int64_t plain) const;
  bool ends_in_gelu(const Tensor& x) const { return ops::ends_in_gelu(x, weight_, bias_); }
  bool takes_parts(const Tensor& x) const { return ops::takes_parts(x, weight_); }
  // How this layer reads tokens like `x`, whatever their width.
  ops::InputForm input_form(const Tensor& x) const { return ops::input_form(x, weight_); }
  // ops::gated_residual(residual, gate, (*this)(x)). A sum over devices is rounded once, behind the
  // gate. An `x` that is given away is freed before the result is allocated.
  Tensor gated_residual(const Tensor& residual_BLC, const Tensor& gate_B1C,
                        ops::LayerInput x) const;

  std::int64_t outputs() const;  // of this device

  // Whether this layer and `other` may run at the same time on two streams: neither communicates,
  // whose order would differ between ranks, nor has a page of its own, whose order is kept for one
  // stream; and they share no scratch memory.
  bool may_run_concurrently(const Linear& other) const;

 private:
  Linear(const Weights& w, const Weights& leaf, LinearShape shape);
  friend std::pair<Tensor, Tensor> apply_both(const Linear&, const ops::LayerInput&, const Linear&,
                                              const ops::LayerInput&);
  friend Tensor apply_summed(const Linear&, const Tensor&, const Linear&, const Tensor&);
  friend std::pair<Tensor, Tensor> gated_residuals(GatedLayer, GatedLayer);
  friend std::pair<ops::SumAndInput, ops::SumAndInput> gated_residual_norms(NormedLayer,
                                                                            NormedLayer);
  friend std::pair<Tensor, Tensor> summed_residuals(GatedLayer, GatedLayer);
  Tensor plus_bias(const ops::LayerInput& x, const Tensor& room) const;
  Tensor times_weight(const ops::LayerInput& x) const;
  bool is_summed_with(const Linear& other) const;
  bool stays_on_its_stream() const;

  Matrix weight_;
  Page page_;
  std::optional<Tensor> bias_;
  std::shared_ptr<Scratch> scratch_;
  Outputs outputs_;
};

// {a(x), b(y)}. If both outputs are sums over devices, one reduction serves both.
std::pair<Tensor, Tensor> apply_both(const Linear& a, const ops::LayerInput& x, const Linear& b,
                                     const ops::LayerInput& y);

// The gated residuals of two layers, and the norms of these, as Linear::gated_residual() makes
// them. If both outputs are sums over devices, one reduction serves both.
std::pair<Tensor, Tensor> gated_residuals(GatedLayer a, GatedLayer b);
std::pair<ops::SumAndInput, ops::SumAndInput> gated_residual_norms(NormedLayer a, NormedLayer b);

// a(x) + b(y). If both outputs are sums over devices, one reduction serves both.
Tensor apply_summed(const Linear& a, const Tensor& x, const Linear& b, const Tensor& y);

}  // namespace braid
