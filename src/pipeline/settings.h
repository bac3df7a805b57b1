// A request with every default filled in and every value checked.
#pragma once

#include <string>
#include <vector>

#include "braid/braid.h"
#include "comm/mesh.h"
#include "pipeline/model_files.h"
#include "pipeline/sampling/latents.h"

namespace braid {

struct PromptPair {
  std::string clip, t5;  // the text of each encoder
};

struct Settings {
  std::vector<PromptPair> prompts;
  std::optional<PromptPair> negative;  // there exactly if true guidance runs
  double true_cfg = 1, guidance_rescale = 0, cfg_norm_cap = 0;
  int width = 0, height = 0, steps = 0;
  double guidance = 0;
  int max_sequence_length = 0;
  std::uint64_t seed = 0;
  int num_images = 1, batch_size = 1;
  VaeTiling vae_tiling = VaeTiling::kAuto;
  LatentShape latent_shape;

  int num_pictures() const { return int(prompts.size()) * num_images; }
  const PromptPair& prompt_of(int picture) const { return prompts[picture / num_images]; }
};

// Pictures that are denoised at the same time: a batch for every data-parallel rank and, under
// layer split, for every stage, which fills the pipe.
int pictures_per_round(const Settings& settings, const Degrees& degrees);

// What of the model a request is checked against.
struct ModelLimits {
  ModelDefaults defaults;
  std::int64_t downscale;  // pixels a latent value stands for
  std::int64_t latent_channels;
  bool guidance_embeds;
};

// Sizes are rounded down to multiples of twice the autoencoder's downscale, with a warning.
// Throws InputError naming the field, its range and the value.
Settings settle(const Request& request, const ModelLimits& limits,
                const std::function<void(const std::string&)>& warn);

}  // namespace braid
