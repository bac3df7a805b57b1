#include "pipeline/families/parts.h"

#include <cmath>

#include "base/error.h"
#include "models/causal_lm/names.h"
#include "models/qwen25_vl/model.h"
#include "models/qwen25_vl/names.h"
#include "models/qwen3_vl/model.h"
#include "models/qwen3_vl/names.h"
#include "models/vae/model.h"
#include "models/vae/names.h"

namespace braid {

Part transformer_part(const std::string& class_name, std::int64_t num_heads) {
  return {.role = Part::Role::kDenoiser,
          .folder = "transformer",
          .label = "the transformer",
          .class_name = class_name,
          .num_heads = num_heads};
}

void check_kinds(const Family& model, const std::vector<int>& counts) {
  const auto kinds = model.shape().blocks.size();
  require(counts.size() <= kinds, "a ", model.description().family, " model has ", kinds,
          kinds == 1 ? " kind" : " kinds", " of blocks, numbers of ", counts.size(), " were given");
}

double ratio_to(std::int64_t hidden, std::int64_t wide) {
  const double ratio = double(wide) / double(hidden);
  const bool is_below = double(hidden) * ratio < double(wide);
  return is_below ? std::nextafter(ratio, INFINITY) : ratio;
}

Part autoencoder_part(const VaeConfig& config) {
  return {.role = Part::Role::kDecoder,
          .folder = "vae",
          .label = "the autoencoder",
          .is_large = false,
          .names = vae_names,
          .make = [=](const Weights& w) { (void)Vae(config, w, Vae::Parts::kDecoder); }};
}

VaeConfig read_autoencoder(const ModelFiles& files, ReadVae read) {
  const auto path = files.config_of("vae");
  auto config = read(read_json_object(path));
  const auto file = files.part_files.find("vae");
  const bool is_other = file != files.part_files.end() && path.parent_path() != file->second.path;
  if (is_other) adopt_decoder_widths(config, files.open("vae"));
  return config;
}

CausalLmConfig read_qwen3_vl_language_model(const JsonObject& json) {
  return read_qwen3_vl_text_config(
      JsonObject(json.at("text_config"), json.source() + ": 'text_config'"));
}

Part causal_lm_part(const CausalLmConfig& config, const HiddenStates& states) {
  // The gate, its SiLU and their product, beside the residual tokens, their norm and the kept
  // states.
  const auto live = [=](std::int64_t tokens, int ranks) {
    const auto vectors = 2 + std::int64_t(states.size());
    return tokens * (3 * config.mlp_hidden / ranks + vectors * config.hidden);
  };
  return {.role = Part::Role::kText,
          .folder = "text_encoder",
          .label = "the text encoder",
          .num_heads = config.num_heads,
          .num_kv_heads = config.num_kv_heads,
          .lists = {"layers"},
          .names = [=](const Checkpoint& c) { return causal_lm_names(c, config); },
          .sharding = [=](SharedModulation) { return causal_lm_sharding(config); },
          .adapters = causal_lm_adapter_names(),
          .make = [=](const Weights& w) { (void)CausalLm(config, states, w); },
          .live = live};
}

namespace {

// Numbers that live at once in a vision tower, for each of its tokens.
struct LiveInTower {
  std::int64_t patches, hidden, mlp_hidden;

  std::int64_t of_token() const { return patches * (4 * hidden + 2 * mlp_hidden); }
};

// A language model behind a vision tower; without names and what depends on its class.
Part vision_language_part(const CausalLmConfig& text, const LiveInTower& tower) {
  // This counts as for a language model alone; a picture token is merged from several patches,
  // whose hidden activations live one block at a time.
  const auto live = [=](std::int64_t tokens, int ranks) {
    return tokens * std::max(3 * text.mlp_hidden / ranks + 3 * text.hidden, tower.of_token());
  };
  return {.role = Part::Role::kText,
          .folder = "text_encoder",
          .label = "the text encoder",
          .num_heads = text.num_heads,
          .num_kv_heads = text.num_kv_heads,
          .lists = {"visual.blocks", "language_model.layers"},
          .live = live};
}

}  // namespace

Part qwen3_vl_part(const Qwen3VlConfig& c) {
  auto part = vision_language_part(c.text, {.patches = c.vision.merge * c.vision.merge,
                                            .hidden = c.vision.hidden,
                                            .mlp_hidden = c.vision.mlp_hidden});
  part.kept_of_picture_token = (1 + std::int64_t(c.vision.deepstack.size())) * c.vision.out;
  part.names = qwen3_vl_names;
  part.sharding = [=](SharedModulation) { return qwen3_vl_sharding(c); };
  part.adapters = qwen3_vl_adapter_names();
  part.make = [=](const Weights& w) { (void)Qwen3Vl(c, w); };
  return part;
}

// SwiGLU has two layers of its hidden width.
Part qwen25_vl_part(const Qwen25VlConfig& c) {
  auto part = vision_language_part(c.text, {.patches = c.vision.merge * c.vision.merge,
                                            .hidden = c.vision.hidden,
                                            .mlp_hidden = 2 * c.vision.mlp_hidden});
  part.kept_of_picture_token = c.vision.out;
  part.names = qwen25_vl_names;
  part.sharding = [=](SharedModulation) { return qwen25_vl_sharding(c); };
  part.adapters = qwen25_vl_adapter_names();
  part.make = [=](const Weights& w) { (void)Qwen25Vl(c, w); };
  return part;
}

}  // namespace braid
