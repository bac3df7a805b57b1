// What is asked of a pipeline.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/adapter.h"
#include "braid/inputs.h"

namespace braid {

enum class VaeTiling { kAuto, kOn, kOff };

// A step's initial latents, for requests that do not draw their own.
struct Latents {
  std::vector<std::int64_t> shape;  // [batch, tokens, width] packed, or as the autoencoder has them
  std::vector<float> values;        // row-major
};

// Unset: the defaults of the model's generation_config.json, else the published ones.
struct Request {
  std::vector<std::string> prompts = {};
  std::vector<std::string> prompts_2 = {};  // for a second text encoder, one a prompt
  // For true guidance: FLUX.1's runs with it and `true_cfg` > 1, other models' have "" by default.
  std::optional<std::string> negative_prompt = {};
  std::optional<std::string> negative_prompt_2 = {};
  double true_cfg = 1.0;
  double guidance_rescale = 0;  // 0 to 1: how far it is brought back to the unguided spread
  double cfg_norm_cap = 0;      // its length is at most so many times the unguided one's; 0: off
  double cfg_until = 1;         // 0 to 1: the part of the way to the picture that it runs
  std::optional<int> width = {}, height = {};  // pixels; rounded down to multiples of 16
  std::optional<int> steps = {};
  std::optional<double> guidance = {};          // the model's own scale; models without ignore it
  std::optional<int> max_sequence_length = {};  // text tokens, 1 to 512; of some models to 4096
  std::uint64_t seed = 0;                       // picture k of the request starts from seed + k
  int num_images = 1;                           // a prompt
  int batch_size = 1;                           // pictures that are denoised together
  VaeTiling vae_tiling = VaeTiling::kAuto;
  std::optional<Latents> latents = {};
  PicturesIn pictures = {};
  std::optional<std::vector<Adapter>> adapters = {};  // instead of the pipeline's; for kBeside
};

}  // namespace braid
