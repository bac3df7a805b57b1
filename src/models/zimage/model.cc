#include "models/zimage/model.h"

#include <ATen/ATen.h>

#include "base/error.h"

namespace braid {
namespace {

Rope rows_of(const Rope& rope, std::int64_t begin, std::int64_t count) {
  return {.cos = rope.cos.narrow(0, begin, count), .sin = rope.sin.narrow(0, begin, count)};
}

}  // namespace

ZImage::ZImage(const ZImageConfig& c, const Weights& w, Attend attend,
               std::optional<BlockRange> run)
    : config_(c),
      run_(run_of(run, 2 * c.num_refiners + c.num_layers)),
      attend_(std::move(attend)),
      inputs_(load_end<ZImageInputs>(w, place_if(run_.has_first()), c)),
      refiner_modulators_(w.once() / "noise_refiner", run_.of_kind(0, c.num_refiners), c),
      layer_modulators_(w.once() / "layers", run_.of_kind(2 * c.num_refiners, c.num_layers), c),
      image_refiners_(w / "noise_refiner", run_.of_kind(0, c.num_refiners), c, Modulated::kYes),
      text_refiners_(w.once() / "context_refiner", run_.of_kind(c.num_refiners, c.num_refiners), c,
                     Modulated::kNo),
      layers_(w / "layers", run_.of_kind(2 * c.num_refiners, c.num_layers), c, Modulated::kYes),
      output_(load_end<ZImageOutput>(w, place_if(run_.has_last()), c)) {
  w.finish();
}

ZImageState ZImage::begin(const DenoiserInput& in, const Tensor& state) const {
  check(in.references.empty(), "this transformer looks at no references, its input has ",
        in.references.size());
  if (!inputs_) return ZImageState::unpack(state, in.text.x_BLC.size(1));
  ZImageState x{.image_BIC = inputs_->image(in), .text_BTC = in.refined_BTC};
  if (in.watch) in.watch("x_embedder", x.image_BIC);
  if (!x.text_BTC.defined()) x.text_BTC = embedded_text(in);
  return x;
}

Tensor ZImage::embedded_text(const DenoiserInput& in) const {
  const auto text_BTC = inputs_->text(in);
  if (in.watch) in.watch("cap_embedder", text_BTC);
  return text_BTC;
}

// Image and text tokens each attend only to their own kind.
void ZImage::refine_image(ZImageState& x, Modulations& mods, const DenoiserInput& in,
                          const Rope& rope) const {
  const auto image_rope = rows_of(rope, 0, x.image_BIC.size(1));
  image_refiners_.for_each([&](std::int64_t i, const ZImageBlock& block) {
    x.image_BIC = block(x.image_BIC, mods.take(4 * config_.hidden), image_rope, attend_);
    if (in.watch) in.watch("noise_refiner." + std::to_string(i), x.image_BIC);
  });
}

Tensor ZImage::refined_text(Tensor text_BTC, const DenoiserInput& in, const Rope& rope) const {
  const auto text_rope = rows_of(rope, in.noise.ids_LA.size(0), text_BTC.size(1));
  text_refiners_.for_each([&](std::int64_t i, const ZImageBlock& block) {
    text_BTC = block(text_BTC, {}, text_rope, attend_);
    if (in.watch) in.watch("context_refiner." + std::to_string(i), text_BTC);
  });
  return text_BTC;
}

Tensor ZImage::refine(const DenoiserInput& in, const Tensor& text_BTC) const {
  return refined_text(inputs_ ? embedded_text(in) : text_BTC, in,
                      rope_of(images_and_text(in), config_.rope_axes()));
}

void ZImage::run_layers(ZImageState& x, Modulations& mods, const DenoiserInput& in,
                        const Rope& rope) const {
  const auto num_image = x.image_BIC.size(1), num_text = x.text_BTC.size(1);
  auto tokens = at::cat({x.image_BIC, x.text_BTC}, 1);
  x.image_BIC.reset();
  x.text_BTC.reset();
  layers_.for_each([&](std::int64_t i, const ZImageBlock& block) {
    tokens = block(tokens, mods.take(4 * config_.hidden), rope, attend_);
    if (!in.watch) return;
    const auto name = "layers." + std::to_string(i);
    in.watch(name + " image", tokens.narrow(1, 0, num_image));
    in.watch(name + " text", tokens.narrow(1, num_image, num_text));
  });
  x.image_BIC = tokens.narrow(1, 0, num_image);
  x.text_BTC = tokens.narrow(1, num_image, num_text);
}

Tensor ZImage::advance(const DenoiserInput& in, const Tensor& state) const {
  const auto rope = rope_of(images_and_text(in), config_.rope_axes());
  auto x = begin(in, state);
  Modulations mods(in.modulations_BM);
  refine_image(x, mods, in, rope);
  if (!in.refined_BTC.defined()) x.text_BTC = refined_text(x.text_BTC, in, rope);
  if (!layers_.empty()) run_layers(x, mods, in, rope);
  return output_ ? (*output_)(x, mods.take(config_.hidden)) : x.pack();
}

std::vector<Tensor> ZImage::modulations(const std::vector<Tensor>& conditions_SE,
                                        const std::function<void()>& before_layer) const {
  ModulationsMade made(conditions_SE, num_modulations(), before_layer);
  for (const auto* const list : {&refiner_modulators_, &layer_modulators_})
    list->for_each([&](std::int64_t, const ZImageModulator& layer) { layer.add_to(made); });
  if (output_) output_->add_to(made);
  return std::move(made).take();
}

std::int64_t ZImage::num_modulations() const {
  const auto blocks = refiner_modulators_.size() + layer_modulators_.size();
  return (4 * blocks + (output_ ? 1 : 0)) * config_.hidden;
}

}  // namespace braid
