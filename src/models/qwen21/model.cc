#include "models/qwen21/model.h"

#include <ATen/ATen.h>

#include "base/error.h"

namespace braid {
namespace {

// The text comes before the references.
Tensor spans_of_prefix(const DenoiserInput& in) {
  std::vector<Tensor> parts = {in.text.span_L2};
  for (const auto& reference : in.references) parts.push_back(reference.span_L2);
  return at::cat(parts);
}

// Scale and gate of attention, then of the MLP.
Qwen21Modulation modulation_of(const Tensor& vectors_BV) {
  const auto parts = vectors_BV.unsqueeze(1).chunk(kQwen21BlockVectors, -1);
  const auto no_shift = at::zeros_like(parts[0]);
  return {.attention = {.shift = no_shift, .scale = parts[0], .gate = parts[1]},
          .mlp = {.shift = no_shift, .scale = parts[2], .gate = parts[3]}};
}

}  // namespace

Qwen21::Qwen21(const Qwen21Config& c, const Weights& w, Attend attend,
               std::optional<BlockRange> run)
    : config_(c),
      run_(run_of(run, c.num_layers)),
      attend_(std::move(attend)),
      inputs_(load_end<Qwen21Inputs>(w, place_if(run_.has_first()), c)),
      blocks_(w / "transformer_blocks", run_, c),
      output_(load_end<Qwen21Output>(w, place_if(run_.has_last()), c)) {
  w.finish();
}

Tensor Qwen21::advance(const DenoiserInput& in, const Tensor& state) const {
  const auto span_P2 = spans_of_prefix(in);
  const auto num_prefix = span_P2.size(0), num_image = in.noise.x_BLC.size(1);
  auto x = inputs_ ? inputs_->tokens(in) : state;
  check(x.size(1) == num_prefix + num_image, "a transformer of ", num_prefix, " tokens before ",
        num_image, " of the image was given ", x.size(1));
  Modulations mods(in.modulations_BM);
  const auto of_blocks = kQwen21BlockVectors * config_.hidden;
  const auto image = modulation_of(mods.take(of_blocks));
  const auto prefix = modulation_of(mods.take(of_blocks));
  const Qwen21Runs runs{.num_prefix = num_prefix, .prefix = prefix, .image = image};
  const auto rope = rope_of(prefix_and_image(in), config_.rope_axes());
  const auto watched = [&](const std::string& where) {
    if (in.watch) in.watch(where, x.narrow(1, num_prefix, num_image));
  };
  if (inputs_) watched("img_in");
  blocks_.for_each([&](std::int64_t i, const Qwen21Block& block) {
    x = block(x, runs, rope, span_P2, attend_);
    watched("transformer_blocks." + std::to_string(i));
  });
  if (!output_) return x;
  return (*output_)(x.narrow(1, num_prefix, num_image), mods.take(config_.hidden));
}

std::vector<Tensor> Qwen21::modulations(const std::vector<Tensor>& conditions_SM,
                                        const std::function<void()>& before_layer) const {
  ModulationsMade made(conditions_SM, num_modulations(), before_layer);
  made.add([](const Tensor& condition_SM) { return condition_SM; });
  return std::move(made).take();
}

}  // namespace braid
