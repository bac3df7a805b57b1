// A request to a pipeline.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/adapter.h"
#include "braid/inputs.h"
#include "braid/latents.h"
#include "braid/sampling.h"

namespace braid {

enum class VaeTiling { kAuto, kOn, kOff };

// What pictures hold. kValues: also what their bytes are rounded from. kLatents: only latents;
// nothing is decoded.
enum class Output { kBytes, kValues, kLatents };

// Unset fields take the defaults of the model's generation_config.json, or else the published ones.
struct Request {
  std::vector<std::string> prompts = {};
  std::vector<std::string> prompts_2 = {};  // for a second text encoder, one per prompt
  // True guidance takes these. FLUX.1's runs with a negative prompt and `true_cfg` > 1; other
  // models default to "".
  std::optional<std::string> negative_prompt = {};
  std::optional<std::string> negative_prompt_2 = {};
  // A JSON array of where elements lie that the prompts cite as <id>, for models that were trained
  // to follow layouts. It is written behind each prompt; empty: none.
  std::string boxes = {};
  double true_cfg = 1.0;
  double guidance_rescale = 0;  // 0 to 1: how far it is brought back to the unguided spread
  double cfg_norm_cap = 0;      // caps its length at this multiple of the unguided one's; 0: off
  // Whether each token of the guided velocity keeps the unguided one's length, for models guided
  // token by token; unset: as the model's pipeline does.
  std::optional<bool> cfg_normalize = {};
  double cfg_until = 1;  // 0 to 1: fraction of the way from noise to picture that it runs
  // Pixels; rounded or refused as the model says: ModelInfo::size_multiple.
  std::optional<int> width = {}, height = {};
  std::optional<int> frames = {};  // of a clip; a model of pictures draws 1
  std::optional<int> layers = {};  // that a reference is taken apart into
  std::optional<int> steps = {};   // overruled by lists of noise levels
  Sampling sampling = {};
  std::optional<double> guidance = {};          // the model's own scale; ignored if it has none
  std::optional<int> max_sequence_length = {};  // text tokens, 1 to 512; some models: up to 16384
  std::uint64_t seed = 0;                       // picture k of the request starts from seed + k
  int num_images = 1;                           // per prompt
  int batch_size = 1;                           // pictures denoised together
  VaeTiling vae_tiling = VaeTiling::kAuto;
  std::optional<Latents> latents = {};  // initial ones, instead of drawn noise
  Output output = Output::kBytes;
  PicturesIn pictures = {};
  std::optional<std::vector<Adapter>> adapters = {};  // replace the pipeline's; need kUnmerged
};

}  // namespace braid
