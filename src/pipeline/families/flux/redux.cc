#include "pipeline/families/flux/redux.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "image/resize.h"
#include "pipeline/families/picture_processor.h"

namespace braid {
namespace {

constexpr int kMostReferences = 100;

void check_halves(const JsonObject& json, const char* key) {
  if (!json.has(key)) return;
  const auto& list = json.at(key);
  require(list == nlohmann::json({0.5, 0.5, 0.5}), json.source(), ": '", key,
          "' should be [0.5, 0.5, 0.5], it is ", list.dump());
}

// What the image processor states has to be what is done: the encoder's size, colours from -1 to 1.
void check_processor(const ModelFiles& files, const SiglipConfig& siglip) {
  const auto found = read_image_processor(files.redux / "feature_extractor");
  if (!found) return;
  const auto& json = found->fields;
  check_halves(json, "image_mean");
  check_halves(json, "image_std");
  for (const auto* step : {"do_resize", "do_rescale", "do_normalize"})
    require(json.is_set(step), json.source(), ": '", step, "' should be true");
  check_rescale_factor(json);
  constexpr int kPillowsBicubic = 3;
  json.integer_or("resample", kPillowsBicubic, kPillowsBicubic, kPillowsBicubic);
  if (!json.has("size")) return;
  const JsonObject size(json.at("size"), json.source() + ": 'size'");
  for (const auto* side : {"height", "width"})
    size.integer_or(side, siglip.image_size, siglip.image_size, siglip.image_size);
}

}  // namespace

std::optional<FluxReduxConfig> read_flux_redux(const ModelFiles& files,
                                               const FluxConfig& transformer) {
  if (files.redux.empty()) return {};
  const auto config = [&](const char* part) { return read_json_object(files.config_of(part)); };
  const FluxReduxConfig c{.siglip = read_siglip_config(config(kReduxEncoder)),
                          .redux = read_redux_config(config(kReduxEmbedder))};
  require(c.redux.vision_width == c.siglip.hidden, files.redux.string(), ": the embedder takes ",
          "pictures of width ", c.redux.vision_width, ", the encoder makes ", c.siglip.hidden);
  require(c.redux.text_width == transformer.text_width, files.redux.string(), " makes text of ",
          "width ", c.redux.text_width, ", the transformer takes ", transformer.text_width);
  check_processor(files, c.siglip);
  return c;
}

std::vector<Part> flux_redux_parts(const FluxReduxConfig& c) {
  const Part encoder{.role = Part::Role::kPicture,
                     .folder = kReduxEncoder,
                     .label = "SigLIP",
                     .lists = {"encoder.layers"},
                     .is_large = false,
                     .names = siglip_names,
                     .make = [=](const Weights& w) { (void)Siglip(c.siglip, w); }};
  const Part embedder{.role = Part::Role::kPicture,
                      .folder = kReduxEmbedder,
                      .label = "Redux",
                      .is_large = false,
                      .names = [](const Checkpoint&) { return Names(); },
                      .make = [=](const Weights& w) { (void)Redux(c.redux, w); }};
  return {encoder, embedder};
}

void add_flux_redux(PicturesTaken& taken, const FluxReduxConfig& c) {
  const auto side = int(c.siglip.image_size);
  taken.most_references = kMostReferences;
  taken.references = PicturesTaken::References::kBehindPrompt;
  taken.tokens_behind_prompt = c.siglip.num_patches();
  taken.fit_reference = [=](const Pixels& picture) {
    return resized(picture, side, side, Resampling::kBicubic);
  };
}

EmbedPicture load_flux_redux(const FluxReduxConfig& c, const std::vector<const Part*>& parts,
                             const WeightsOf& weights_of) {
  const auto siglip = std::make_shared<const Siglip>(c.siglip, weights_of(*parts[0]));
  const auto redux = std::make_shared<const Redux>(c.redux, weights_of(*parts[1]));
  return [=](const Tensor& pixels_13SS) { return (*redux)((*siglip)(pixels_13SS)); };
}

// Sums several pictures as the reference does: each is appended to the prompt and scaled together
// with it. Pooled prompts have their own scales there, which are 1.
Condition redux_behind_prompt(const Condition& embedded, const Prompt& prompt,
                              const EmbeddedPictures& pictures) {
  const bool is_none = prompt.text.empty() && prompt.second.empty();
  const auto own = [&](const Tensor& x) { return is_none ? at::zeros_like(x) : x; };
  std::vector<Tensor> texts, pooled;
  for (std::size_t i = 0; i < pictures.embedded.size(); ++i) {
    const auto text = at::cat({own(embedded.text_BTC), pictures.embedded[i]}, 1);
    texts.push_back(text * at::scalar_tensor(pictures.scales[i], text.options()));
    pooled.push_back(own(embedded.pooled_BC));
  }
  return {.text_BTC = at::stack(texts).sum(0), .pooled_BC = at::stack(pooled).sum(0)};
}

}  // namespace braid
