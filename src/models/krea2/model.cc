#include "models/krea2/model.h"

#include <ATen/ATen.h>

#include "base/error.h"

namespace braid {

Krea2::Krea2(const Krea2Config& c, const Weights& w, Attend attend, std::optional<BlockRange> run)
    : config_(c),
      run_(run_of(run, c.num_blocks())),
      attend_(std::move(attend)),
      inputs_(load_end<Krea2Inputs>(w, place_if(run_.has_first()), c)),
      blocks_(w / "transformer_blocks", run_.of_kind(0, c.num_layers), c),
      text_fusion_(w.once() / "text_fusion", run_.of_kind(c.num_layers, 1), c),
      output_(load_end<Krea2Output>(w, place_if(run_.has_last()), c)) {
  w.finish();
}

Tensor Krea2::refine(const DenoiserInput& in, const Tensor& text_BTC) const {
  auto text = text_BTC.defined() ? text_BTC : in.text.x_BLC;
  text_fusion_.for_each(
      [&](std::int64_t, const Krea2TextFusion& fuse) { text = fuse(text, attend_, in.watch); });
  return text;
}

Tensor Krea2::fused_text(const DenoiserInput& in) const {
  if (in.refined_BTC.defined()) return in.refined_BTC;
  check(!text_fusion_.empty(), "this part of the transformer needs text that was fused before");
  return refine(in, {});
}

Tensor Krea2::advance(const DenoiserInput& in, const Tensor& state) const {
  check(in.references.empty(), "this transformer looks at no references, its input has ",
        in.references.size());
  auto tokens = state;
  if (inputs_) {
    const auto image = inputs_->image(in);
    if (in.watch) in.watch("img_in", image);
    tokens = at::cat({fused_text(in), image}, 1);
  }
  if (blocks_.empty() && !output_) return tokens;
  const auto num_image = in.noise.x_BLC.size(1), num_text = tokens.size(1) - num_image;
  Modulations mods(in.modulations_BM);
  const auto vectors_BVC =
      mods.take(kKrea2BlockVectors * config_.image.hidden).unflatten(-1, {kKrea2BlockVectors, -1});
  const auto rope = rope_of(text_and_images(in), config_.rope_axes());
  blocks_.for_each([&](std::int64_t i, const Krea2Block& block) {
    tokens = block(tokens, vectors_BVC, rope, attend_);
    if (!in.watch) return;
    const auto name = "transformer_blocks." + std::to_string(i);
    in.watch(name + " image", tokens.narrow(1, num_text, num_image));
    in.watch(name + " text", tokens.narrow(1, 0, num_text));
  });
  if (!output_) return tokens;
  return (*output_)(tokens.narrow(1, num_text, num_image), mods.take(config_.image.hidden));
}

std::vector<Tensor> Krea2::modulations(const std::vector<Tensor>& conditions_SM,
                                       const std::function<void()>& before_layer) const {
  ModulationsMade made(conditions_SM, num_modulations(), before_layer);
  if (num_modulations() > 0) made.add([](const Tensor& condition_SM) { return condition_SM; });
  return std::move(made).take();
}

std::int64_t Krea2::num_modulations() const {
  return blocks_.empty() && !output_ ? 0 : kKrea2Vectors * config_.image.hidden;
}

}  // namespace braid
