#include "nn/linear.h"

#include <ATen/ATen.h>

#include "ops/sums.h"

namespace braid {
namespace {

bool are_summed(const Outputs& outputs) { return outputs.are == Outputs::Are::kSummed; }

// A product of this device's share, and what becomes of the sum over all.
struct Addend {
  Tensor part;
  ops::SumEnd end = {};
};

// The same, where the sum is taken: a transport through the hosts sums there.
ops::SumEnd at_device(const ops::SumEnd& end, at::Device device) {
  const auto there = [&](const Tensor& x) { return x.defined() ? x.to(device) : x; };
  return {.bias_C = end.bias_C ? std::optional(there(*end.bias_C)) : std::nullopt,
          .residual_BLC = there(end.residual_BLC),
          .gate_B1C = there(end.gate_B1C)};
}

std::vector<Tensor> summed(const Group& group, const std::vector<Addend>& addends) {
  std::vector<Tensor> parts;
  for (const auto& addend : addends) parts.push_back(addend.part);
  return group.all_reduce(parts, [&](const SumRun& run, std::span<const Tensor> of_ranks,
                                     const Tensor& out) {
    const auto& [part, end] = addends[run.tensor];
    const auto tokens = part.dim() < 3 ? part.numel() / part.size(-1) : part.size(-2);
    ops::add_parts(of_ranks, at_device(end, out.device()),
                   {.tokens = tokens, .width = part.size(-1), .begin = run.elements.begin}, out);
  });
}

}  // namespace

Linear::Linear(const Weights& w, LinearShape shape) : Linear(w, w.paged(PageLevel::kLeaf), shape) {}

// The bias is not in the layer's page: it is added after the sum over devices, when the weight is
// no longer needed.
Linear::Linear(const Weights& w, const Weights& leaf, LinearShape shape)
    : weight_(leaf.matrix("weight", {shape.out, shape.in})),
      page_(leaf.page()),
      scratch_(w.scratch()),
      outputs_(w.outputs()) {
  if (shape.bias == Bias::kYes) bias_ = w.tensor("bias", {shape.out});
}

Tensor Linear::operator()(const ops::LayerInput& x, const Tensor& room) const {
  if (are_summed(outputs_))
    return summed(outputs_.group, {Addend{times_weight(x), {bias_}}}).front();
  if (outputs_.are != Outputs::Are::kGathered) return plus_bias(x, room);
  return outputs_.group.all_gather(plus_bias(x, {}), -1);
}

Tensor Linear::gelu(const ops::LayerInput& x) const {
  const auto in_use = page_.use();
  return ops::linear_gelu(x, weight_, bias_, *scratch_);
}

ops::LayerInput Linear::gelu(const ops::LayerInput& x, ops::InputForm form) const {
  return x.is_quantized() ? ops::gelu((*this)(x), form) : gelu(x);
}

std::pair<Tensor, Tensor> Linear::then_gelu(const Tensor& x, std::int64_t plain) const {
  const auto in_use = page_.use();
  return ops::linear_then_gelu(x, weight_, *bias_, plain);
}

Tensor Linear::gated_residual(const Tensor& residual_BLC, const Tensor& gate_B1C,
                              ops::LayerInput x) const {
  const auto y = are_summed(outputs_) ? times_weight(x) : (*this)(x);
  x.free();
  if (!are_summed(outputs_)) return ops::gated_residual(residual_BLC, gate_B1C, y);
  return summed(outputs_.group, {Addend{y, {bias_, residual_BLC, gate_B1C}}}).front();
}

Tensor Linear::plus_bias(const ops::LayerInput& x, const Tensor& room) const {
  const auto in_use = page_.use();
  return ops::linear(x, weight_, bias_, *scratch_, room);
}

Tensor Linear::times_weight(const ops::LayerInput& x) const {
  const auto in_use = page_.use();
  return ops::linear(x, weight_, std::nullopt, *scratch_);
}

bool Linear::stays_on_its_stream() const {
  const bool communicates = are_summed(outputs_) || outputs_.are == Outputs::Are::kGathered;
  return !communicates && page_.pages() == nullptr;
}

std::int64_t Linear::outputs() const { return weight_.values_NC.size(0); }

bool Linear::may_run_concurrently(const Linear& other) const {
  return stays_on_its_stream() && other.stays_on_its_stream() && scratch_ != other.scratch_;
}

bool Linear::is_summed_with(const Linear& other) const {
  return are_summed(outputs_) && are_summed(other.outputs_);
}

std::pair<Tensor, Tensor> apply_both(const Linear& a, const ops::LayerInput& x, const Linear& b,
                                     const ops::LayerInput& y) {
  if (!a.is_summed_with(b)) return {a(x), b(y)};
  const auto sums = summed(a.outputs_.group, {Addend{a.times_weight(x), {a.bias_}},
                                              Addend{b.times_weight(y), {b.bias_}}});
  return {sums[0], sums[1]};
}

// Both layers' outputs are sums.
std::pair<Tensor, Tensor> summed_residuals(GatedLayer a, GatedLayer b) {
  const auto addend_of = [](GatedLayer& gated) -> Addend {
    auto part = gated.layer.times_weight(gated.x);
    gated.x.free();
    return {std::move(part), {gated.layer.bias_, gated.residual_BLC, gated.gate_B1C}};
  };
  const auto sums = summed(a.layer.outputs_.group, {addend_of(a), addend_of(b)});
  return {sums[0], sums[1]};
}

std::pair<Tensor, Tensor> gated_residuals(GatedLayer a, GatedLayer b) {
  if (a.layer.is_summed_with(b.layer)) return summed_residuals(std::move(a), std::move(b));
  const auto of = [](GatedLayer& gated) {
    return gated.layer.gated_residual(gated.residual_BLC, gated.gate_B1C, std::move(gated.x));
  };
  auto first = of(a);
  return {std::move(first), of(b)};
}

std::pair<ops::SumAndInput, ops::SumAndInput> gated_residual_norms(NormedLayer a, NormedLayer b) {
  if (a.gated.layer.is_summed_with(b.gated.layer)) {
    const auto [sum_a, sum_b] = summed_residuals(std::move(a.gated), std::move(b.gated));
    return {{sum_a, ops::modulated_norm(sum_a, a.norm, a.form)},
            {sum_b, ops::modulated_norm(sum_b, b.norm, b.form)}};
  }
  const auto of = [](NormedLayer& side) {
    auto& [layer, x, residual, gate] = side.gated;
    const auto y = layer(x);
    x.free();
    return ops::gated_residual_norm(residual, gate, y, side.norm, side.form);
  };
  auto first = of(a);
  return {std::move(first), of(b)};
}

Tensor apply_summed(const Linear& a, const Tensor& x, const Linear& b, const Tensor& y) {
  if (!a.is_summed_with(b)) return a(x) + b(y);
  const auto bias = a.bias_ && b.bias_ ? std::optional(*a.bias_ + *b.bias_)
                    : a.bias_          ? a.bias_
                                       : b.bias_;
  const Addend addend{a.times_weight(x) + b.times_weight(y), {bias}};
  return summed(a.outputs_.group, {addend}).front();
}

}  // namespace braid
