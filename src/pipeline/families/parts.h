// Parts shared by models of several families, and helpers to read their descriptions.
#pragma once

#include "base/file.h"
#include "models/causal_lm/model.h"
#include "models/qwen25_vl/config.h"
#include "models/qwen3_vl/config.h"
#include "pipeline/families/family.h"
#include "pipeline/files/model_files.h"

namespace braid {

// The denoiser in the folder "transformer", without what depends on its class.
Part transformer_part(const std::string& class_name, std::int64_t num_heads);

// Throws InputError if `counts` (Family::with_blocks) name more kinds of blocks than the model has.
void check_kinds(const Family& model, const std::vector<int>& counts);

// What a config calls the ratio of an MLP's width: the classes round its product with `hidden`
// down, which has to be `wide` again.
double ratio_to(std::int64_t hidden, std::int64_t wide);

// The decoder of an AutoencoderKL or AutoencoderKLFlux2.
Part autoencoder_part(const VaeConfig& config);

// Reads text_encoder/config.json of a Qwen3-VL that is given no pictures: its vision tower is left
// alone.
CausalLmConfig read_qwen3_vl_language_model(const JsonObject& json);

// A language model with `states` as the embedded prompt.
Part causal_lm_part(const CausalLmConfig& config, const HiddenStates& states);

// A Qwen3-VL or a Qwen2.5-VL that looks at pictures.
Part qwen3_vl_part(const Qwen3VlConfig& config);
Part qwen25_vl_part(const Qwen25VlConfig& config);

// A denoiser's configuration: read(json) from its config.json or, for a single file without
// one, infer(checkpoint) from the shapes. A single file beside another denoiser's config.json
// has its own numbers of blocks, and maybe no guidance.
template <class Read, class Infer>
auto read_denoiser(const ModelFiles& files, const std::string& folder, Read read, Infer infer) {
  const auto path = files.config_of(folder);
  if (files.single_file.empty()) return read(read_json_object(path));
  if (!is_there(path)) return infer(files.open(folder));
  auto config = read(read_json_object(path));
  const bool is_its_own = path.parent_path() == files.single_file;
  if (!is_its_own) adopt_blocks(config, files.open(folder));
  return config;
}

// The autoencoder's configuration, by `read` for families whose pictures have alpha. The decoder's
// widths are those of a file that stands in for the directory's.
using ReadVae = VaeConfig (*)(const JsonObject&);
VaeConfig read_autoencoder(const ModelFiles& files, ReadVae read = read_vae_config);

}  // namespace braid
