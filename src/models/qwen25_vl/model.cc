#include "models/qwen25_vl/model.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

// Time, then rows, then columns.
std::vector<std::int64_t> axes_in_order(const Qwen25VlConfig& c) {
  std::vector<std::int64_t> axes;
  for (std::size_t axis = 0; axis < c.sections.size(); ++axis)
    axes.insert(axes.end(), std::size_t(c.sections[axis]), std::int64_t(axis));
  return axes;
}

}  // namespace

Qwen25Vl::Qwen25Vl(const Qwen25VlConfig& c, const Weights& w)
    : config_(c),
      options_(at::TensorOptions(w.dtype()).device(w.device())),
      tower_(w / "visual", c.vision),
      embedding_(w / "language_model" / "embed_tokens", c.text.vocab_size, c.text.hidden),
      layers_(w / "language_model" / "layers", c.text.num_layers, c.text),
      norm_(w / "language_model" / "norm", c.text.hidden, c.text.eps) {
  w.finish();
}

TowerTokens Qwen25Vl::encode(const std::vector<Tensor>& pictures) const {
  TowerTokens together;
  std::vector<Tensor> tokens;
  const auto side = config_.vision.form().pixels_per_token();
  for (const auto& picture : pictures) {
    tokens.push_back(tower_(picture));
    together.grids.push_back({.rows = picture.size(1) / side, .columns = picture.size(2) / side});
  }
  if (!tokens.empty()) together.tokens_MC = at::cat(tokens);
  return together;
}

Tensor Qwen25Vl::operator()(const std::vector<std::int64_t>& ids,
                            const TowerTokens& pictures) const {
  const auto places = places_of(ids, pictures.grids, config_.image_token, config_.text.vocab_size);
  const auto ids_1T = at::tensor(places.ids).unsqueeze(0);
  require_within_window(config_.text, ids_1T.size(1));
  const TextRun all{.begin = 0, .count = ids_1T.size(1)};
  const PackedPrompts prompt(ids_1T, std::span(&all, 1), Pads::kSkipped);
  const auto rope = rope_of(places, axes_in_order(config_), config_.text.theta, options_);
  auto x = embedding_(ids_1T);
  if (pictures.tokens_MC.defined()) {
    const auto where = at::tensor(places.of_pictures, at::kLong).to(options_.device());
    x = x.index_copy(1, where, pictures.tokens_MC.unsqueeze(0));
  }
  layers_.for_each([&](std::int64_t, const CausalLmLayer& layer) { x = layer(x, prompt, rope); });
  return norm_(x);
}

}  // namespace braid
