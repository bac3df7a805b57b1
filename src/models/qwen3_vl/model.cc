#include "models/qwen3_vl/model.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "models/causal_lm/picture_places.h"

namespace braid {
namespace {

// Angles alternate between time, rows and columns; once two are used up, the rest belong to time.
std::vector<std::int64_t> interleaved_axes(const Qwen3VlConfig& c) {
  std::vector<std::int64_t> axes;
  for (std::int64_t i = 0; i < c.text.head_width / 2; ++i)
    axes.push_back(i % 3 != 0 && i < 3 * c.sections[std::size_t(i % 3)] ? i % 3 : 0);
  return axes;
}

}  // namespace

Qwen3Vl::Qwen3Vl(const Qwen3VlConfig& c, const Weights& w)
    : config_(c),
      options_(at::TensorOptions(w.dtype()).device(w.device())),
      tower_(w / "visual", c.vision),
      embedding_(w / "language_model" / "embed_tokens", c.text.vocab_size, c.text.hidden),
      layers_(w / "language_model" / "layers", c.text.num_layers, c.text) {
  const auto norm = w / "language_model" / "norm";
  w.wants_unused() ? (void)LlamaRmsNorm(norm, c.text.hidden, c.text.eps) : norm.skip();
  w.finish();
}

EncodedPictures Qwen3Vl::encode(const std::vector<Tensor>& pictures) const {
  EncodedPictures together;
  std::vector<Tensor> tokens;
  std::vector<std::vector<Tensor>> added;
  const auto side = config_.vision.pixels_per_token();
  for (const auto& picture : pictures) {
    auto encoded = tower_(picture);
    together.grids.push_back({.rows = picture.size(1) / side, .columns = picture.size(2) / side});
    tokens.push_back(encoded.tokens_MC);
    added.resize(encoded.added_MC.size());
    for (std::size_t i = 0; i < added.size(); ++i) added[i].push_back(encoded.added_MC[i]);
  }
  if (!tokens.empty()) together.all.tokens_MC = at::cat(tokens);
  for (const auto& of_layer : added) together.all.added_MC.push_back(at::cat(of_layer));
  return together;
}

Tensor Qwen3Vl::operator()(const std::vector<std::int64_t>& ids,
                           const EncodedPictures& pictures) const {
  const auto places = places_of(ids, pictures.grids, config_.image_token, config_.text.vocab_size);
  const auto ids_1T = at::tensor(places.ids).unsqueeze(0);
  const TextRun all{.begin = 0, .count = ids_1T.size(1)};
  const PackedPrompts prompt(ids_1T, std::span(&all, 1), Pads::kSkipped);
  const auto rope = rope_of(places, interleaved_axes(config_), config_.text.theta, options_);
  const auto& encoded = pictures.all;
  const auto where = at::tensor(places.of_pictures, at::kLong).to(options_.device());
  auto x = embedding_(ids_1T);
  if (encoded.tokens_MC.defined()) x = x.index_copy(1, where, encoded.tokens_MC.unsqueeze(0));
  const auto layers = config_.text.num_layers;
  const auto layers_with_features = std::min(std::int64_t(encoded.added_MC.size()),
                                             config_.last_layer_is_plain ? layers - 1 : layers);
  layers_.for_each([&](std::int64_t i, const CausalLmLayer& layer) {
    x = layer(x, prompt, rope);
    if (i < layers_with_features)
      x = x.index_add(1, where, encoded.added_MC[std::size_t(i)].unsqueeze(0));
  });
  return x;
}

}  // namespace braid
