#include "models/flux3/blocks.h"

#include <ATen/ATen.h>

#include <array>

#include "nn/norm.h"

namespace braid {
namespace {

LinearShape without_bias(std::int64_t in, std::int64_t out) {
  return {.in = in, .out = out, .bias = Bias::kNo};
}

Tensor load_head_norm(const Weights& w, std::int64_t head_width) {
  return w.as(at::kFloat).tensor("weight", {head_width});
}

}  // namespace

Flux3Block::Flux3Block(const Weights& w, const Flux3Config& c)
    : in_(w / "linear1", without_bias(c.hidden(), 3 * c.hidden() + 2 * c.mlp_hidden)),
      attention_out_(w / "attn_out", without_bias(c.hidden(), c.hidden())),
      mlp_out_(w / "mlp_out", without_bias(c.mlp_hidden, c.hidden())),
      q_norm_D_(load_head_norm(w / "norm" / "query_norm", c.head_width)),
      k_norm_D_(load_head_norm(w / "norm" / "key_norm", c.head_width)),
      head_width_(c.head_width),
      hidden_(c.hidden()),
      mlp_hidden_(c.mlp_hidden),
      norm_eps_(c.norm_eps) {}

Tensor Flux3Block::normed(const std::vector<ModulatedRun>& runs) const {
  std::vector<Tensor> all;
  for (const auto& run : runs) all.push_back(modulated_norm(run.x_BLC, run.modulation, norm_eps_));
  return all.size() == 1 ? all.front() : at::cat(all, 1);
}

Flux3Block::Sides Flux3Block::sides(const Tensor& normed_BLC, const Rope& rope,
                                    const Attend& attend) const {
  const auto fused = in_(normed_BLC);
  // [q | k | v | gate | value], whole or a share
  const auto width = fused.size(-1) * hidden_ / (3 * hidden_ + 2 * mlp_hidden_);
  const auto mlp = (fused.size(-1) - 3 * width) / 2;
  const auto parts = fused.split_with_sizes({width, width, width, mlp, mlp}, -1);
  const ops::QueriesKeys heads{{split_heads(parts[0], head_width_), q_norm_D_},
                               {split_heads(parts[1], head_width_), k_norm_D_}};
  auto attended = attend_tokens(attend, ops::normed_rotated(std::array{heads}, norm_eps_, rope),
                                split_heads(parts[2], head_width_));
  return {.attended_BLC = std::move(attended), .activated_BLM = ops::swiglu(parts[3], parts[4])};
}

Tensor Flux3Block::computed(const Tensor& normed_BLC, const Rope& rope,
                            const Attend& attend) const {
  const auto both = sides(normed_BLC, rope, attend);
  return apply_summed(attention_out_, both.attended_BLC, mlp_out_, both.activated_BLM);
}

std::vector<Tensor> Flux3Block::operator()(const std::vector<ModulatedRun>& runs, const Rope& rope,
                                           const Attend& attend) const {
  const auto y_BLC = computed(normed(runs), rope, attend);
  std::vector<Tensor> made;
  std::int64_t begin = 0;
  for (const auto& [x_BLC, m] : runs) {
    const auto y = y_BLC.narrow(1, begin, x_BLC.size(1));
    made.push_back(ops::gated_residual(x_BLC, m.gate, y));
    begin += x_BLC.size(1);
  }
  return made;
}

}  // namespace braid
