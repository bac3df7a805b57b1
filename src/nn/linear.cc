#include "nn/linear.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

bool are_summed(const Outputs& outputs) { return outputs.are == Outputs::Are::kSummed; }

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

Tensor Linear::operator()(const Tensor& x) const {
  if (are_summed(outputs_)) return finish(outputs_.group.all_reduce(times_weight(x)));
  const auto y = plus_bias(x);
  return outputs_.are == Outputs::Are::kGathered ? outputs_.group.all_gather(y, -1) : y;
}

Tensor Linear::gelu(const Tensor& x) const {
  const auto in_use = page_.use();
  return ops::linear_gelu(x, weight_, bias_, *scratch_);
}

Tensor Linear::plus_bias(const Tensor& x) const {
  const auto in_use = page_.use();
  return ops::linear(x, weight_, bias_, *scratch_);
}

Tensor Linear::times_weight(const Tensor& x) const {
  const auto in_use = page_.use();
  return ops::linear(x, weight_, std::nullopt, *scratch_);
}

bool Linear::stays_on_its_stream() const {
  const bool communicates = are_summed(outputs_) || outputs_.are == Outputs::Are::kGathered;
  return !communicates && page_.pages() == nullptr;
}

bool Linear::may_run_concurrently(const Linear& other) const {
  return stays_on_its_stream() && other.stays_on_its_stream() && scratch_ != other.scratch_;
}

Tensor Linear::finish(const Tensor& sum) const { return bias_ ? sum + *bias_ : sum; }

std::pair<Tensor, Tensor> apply_both(const Linear& a, const Tensor& x, const Linear& b,
                                     const Tensor& y) {
  if (!are_summed(a.outputs_) || !are_summed(b.outputs_)) return {a(x), b(y)};
  const auto partial = at::cat({a.times_weight(x), b.times_weight(y)}, 1);
  const auto sums =
      a.outputs_.group.all_reduce(partial).split_with_sizes({x.size(1), y.size(1)}, 1);
  return {a.finish(sums[0]), b.finish(sums[1])};
}

Tensor apply_summed(const Linear& a, const Tensor& x, const Linear& b, const Tensor& y) {
  if (!are_summed(a.outputs_) || !are_summed(b.outputs_)) return a(x) + b(y);
  const auto partial = a.times_weight(x) + b.times_weight(y);
  return b.finish(a.finish(a.outputs_.group.all_reduce(partial)));
}

}  // namespace braid
