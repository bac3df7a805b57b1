#include "models/qwen21/blocks.h"

#include <ATen/ATen.h>

#include <array>

#include "nn/norm.h"

namespace braid {
namespace {

using OfRun = Modulation Qwen21Modulation::*;

// The one run that there is, or null if there are two.
const Qwen21Modulation* only_run(const Qwen21Runs& runs, std::int64_t tokens) {
  if (runs.num_prefix == 0) return &runs.image;
  return runs.num_prefix == tokens ? &runs.prefix : nullptr;
}

// of_run(tokens, modulation) of the prefix and of the image.
template <class Of>
Tensor by_run(const Tensor& x_BLC, const Qwen21Runs& runs, OfRun layer, const Of& of_run) {
  const auto prefix = runs.num_prefix, all = x_BLC.size(1);
  if (const auto* const only = only_run(runs, all)) return of_run(0, all, only->*layer);
  return at::cat(
      {of_run(0, prefix, runs.prefix.*layer), of_run(prefix, all - prefix, runs.image.*layer)}, 1);
}

Tensor normed_runs(const Tensor& x_BLC, const Qwen21Runs& runs, OfRun layer, double eps) {
  return by_run(x_BLC, runs, layer,
                [&](std::int64_t begin, std::int64_t count, const Modulation& m) {
                  return modulated_norm(x_BLC.narrow(1, begin, count), m, eps);
                });
}

Tensor plus_gated(const Tensor& x_BLC, const Linear& out, Tensor y_BLM, const Qwen21Runs& runs,
                  OfRun layer) {
  if (const auto* const only = only_run(runs, x_BLC.size(1)))
    return out.gated_residual(x_BLC, (only->*layer).gate, std::move(y_BLM));
  const auto y_BLC = out(y_BLM);
  return by_run(x_BLC, runs, layer,
                [&](std::int64_t begin, std::int64_t count, const Modulation& m) {
                  return ops::gated_residual(x_BLC.narrow(1, begin, count), m.gate,
                                             y_BLC.narrow(1, begin, count));
                });
}

}  // namespace

Qwen21Attention::Qwen21Attention(const Weights& w, const Qwen21Config& c)
    : qkv_(w / "qkv", {.in = c.hidden, .out = 3 * c.hidden, .bias = Bias::kNo}),
      q_norm_D_((w / "norm_q").tensor("weight", {c.head_width()})),
      k_norm_D_((w / "norm_k").tensor("weight", {c.head_width()})),
      out_(w / "out", {.in = c.hidden, .out = c.hidden, .bias = Bias::kNo}),
      head_width_(c.head_width()),
      norm_eps_(c.norm_eps) {}

Tensor Qwen21Attention::attended(const Tensor& x_BLC, const Rope& rope, const Tensor& span_P2,
                                 const Attend& attend) const {
  const auto parts = qkv_(x_BLC).chunk(3, -1);
  const ops::QueriesKeys heads{{split_heads(parts[0], head_width_), q_norm_D_},
                               {split_heads(parts[1], head_width_), k_norm_D_}};
  const auto [q, k] = ops::normed_rotated(std::array{heads}, norm_eps_, rope);
  return attend_behind_prefix(attend, q, k, split_heads(parts[2], head_width_), span_P2);
}

Qwen21Block::Qwen21Block(const Weights& w, const Qwen21Config& c)
    : attention_(w / "attn", c),
      gate_up_(w / "img_mlp" / "gate_up",
               {.in = c.hidden, .out = 2 * c.mlp_hidden, .bias = Bias::kNo}),
      out_(w / "img_mlp" / "out", {.in = c.mlp_hidden, .out = c.hidden, .bias = Bias::kNo}),
      norm_eps_(c.norm_eps) {}

Tensor Qwen21Block::operator()(const Tensor& x_BLC, const Qwen21Runs& runs, const Rope& rope,
                               const Tensor& span_P2, const Attend& attend) const {
  // Nothing that attention made is alive in the MLP, the widest place.
  const auto x = plus_gated(
      x_BLC, attention_.out(),
      attention_.attended(normed_runs(x_BLC, runs, &Qwen21Modulation::attention, norm_eps_), rope,
                          span_P2, attend),
      runs, &Qwen21Modulation::attention);
  return plus_gated(x, out_, activated(x, runs), runs, &Qwen21Modulation::mlp);
}

Tensor Qwen21Block::activated(const Tensor& x_BLC, const Qwen21Runs& runs) const {
  const auto halves =
      gate_up_(normed_runs(x_BLC, runs, &Qwen21Modulation::mlp, norm_eps_)).chunk(2, -1);
  return ops::swiglu(halves[0], halves[1]);
}

}  // namespace braid
