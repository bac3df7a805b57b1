#include "nn/linear.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

bool are_summed(const Outputs& outputs) { return outputs.are == Outputs::Are::kSummed; }

}  // namespace

Linear::Linear(const Weights& w, LinearShape shape)
    : weight_(w.tensor("weight", {shape.out, shape.in})), outputs_(w.outputs()) {
  if (shape.bias == Bias::kYes) bias_ = w.tensor("bias", {shape.out});
}

Tensor Linear::operator()(const Tensor& x) const {
  if (are_summed(outputs_))
    return finish(outputs_.group.all_reduce(ops::linear(x, weight_, std::nullopt)));
  const auto y = ops::linear(x, weight_, bias_);
  return outputs_.are == Outputs::Are::kGathered ? outputs_.group.all_gather(y, -1) : y;
}

Tensor Linear::finish(const Tensor& sum) const { return bias_ ? sum + *bias_ : sum; }

std::pair<Tensor, Tensor> apply_both(const Linear& a, const Tensor& x, const Linear& b,
                                     const Tensor& y) {
  if (!are_summed(a.outputs_) || !are_summed(b.outputs_)) return {a(x), b(y)};
  const auto partial = at::cat(
      {ops::linear(x, a.weight_, std::nullopt), ops::linear(y, b.weight_, std::nullopt)}, 1);
  const auto sums =
      a.outputs_.group.all_reduce(partial).split_with_sizes({x.size(1), y.size(1)}, 1);
  return {a.finish(sums[0]), b.finish(sums[1])};
}

}  // namespace braid
