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
      image_refiners_(w / "noise_refiner", run_.of_kind(0, c.num_refiners), c, Modulated::kYes),
      text_refiners_(w / "context_refiner", run_.of_kind(c.num_refiners, c.num_refiners), c,
                     Modulated::kNo),
      layers_(w / "layers", run_.of_kind(2 * c.num_refiners, c.num_layers), c, Modulated::kYes),
      output_(load_end<ZImageOutput>(w, place_if(run_.has_last()), c)) {
  w.finish();
}

ZImageState ZImage::begin(const DenoiserInput& in, const Tensor& state) const {
  check(in.references.empty(), "this transformer looks at no references, its input has ",
        in.references.size());
  if (!inputs_) return ZImageState::unpack(state, in.text.x_BLC.size(1), config_.condition_width());
  const auto x = (*inputs_)(in);
  if (in.watch) in.watch("x_embedder", x.image_BIC);
  if (in.watch) in.watch("cap_embedder", x.text_BTC);
  return x;
}

// Each kind of tokens attends to itself alone.
void ZImage::refine(ZImageState& x, const DenoiserInput& in, const Rope& rope) const {
  const auto num_image = x.image_BIC.size(1), num_text = x.text_BTC.size(1);
  const auto image_rope = rows_of(rope, 0, num_image);
  const auto text_rope = rows_of(rope, num_image, num_text);
  image_refiners_.for_each([&](std::int64_t i, const ZImageBlock& block) {
    x.image_BIC = block(x.image_BIC, x.condition_BE, image_rope, attend_);
    if (in.watch) in.watch("noise_refiner." + std::to_string(i), x.image_BIC);
  });
  text_refiners_.for_each([&](std::int64_t i, const ZImageBlock& block) {
    x.text_BTC = block(x.text_BTC, x.condition_BE, text_rope, attend_);
    if (in.watch) in.watch("context_refiner." + std::to_string(i), x.text_BTC);
  });
}

void ZImage::run_layers(ZImageState& x, const DenoiserInput& in, const Rope& rope) const {
  const auto num_image = x.image_BIC.size(1), num_text = x.text_BTC.size(1);
  auto tokens = at::cat({x.image_BIC, x.text_BTC}, 1);
  x.image_BIC.reset();
  x.text_BTC.reset();
  layers_.for_each([&](std::int64_t i, const ZImageBlock& block) {
    tokens = block(tokens, x.condition_BE, rope, attend_);
    if (!in.watch) return;
    const auto name = "layers." + std::to_string(i);
    in.watch(name + " image", tokens.narrow(1, 0, num_image));
    in.watch(name + " text", tokens.narrow(1, num_image, num_text));
  });
  x.image_BIC = tokens.narrow(1, 0, num_image);
  x.text_BTC = tokens.narrow(1, num_image, num_text);
}

Tensor ZImage::advance(const DenoiserInput& in, const Tensor& state) const {
  const auto rope =
      rope_table(at::cat({in.noise.ids_LA, in.text.ids_LA}),
                 {.widths = config_.axes, .theta = config_.theta, .angles = at::kFloat});
  auto x = begin(in, state);
  refine(x, in, rope);
  if (!layers_.empty()) run_layers(x, in, rope);
  return output_ ? (*output_)(x) : x.pack();
}

}  // namespace braid
