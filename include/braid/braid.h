// Braid: pictures from prompts. The whole public interface of the library.
//
//   braid::Pipeline pipeline({.model = "models/demo"});
//   const auto pictures = pipeline.generate({.prompts = {"a red circle on a blue background"}});
//
// No global state. Any number of threads may use a pipeline; its requests wait for each other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "braid/error.h"
#include "braid/layout.h"
#include "braid/memory.h"

namespace braid {

enum class Dtype { kAuto, kFloat32, kBfloat16, kFloat16 };

// Whether a step is recorded once and then repeated by the device alone: kAuto where that is
// possible, which is on an NVIDIA GPU that holds all of the transformer's weights.
enum class Graphs { kAuto, kOff };

struct PipelineOptions {
  // A model directory in the diffusers layout, or a single-file transformer (.safetensors).
  std::filesystem::path model;
  // The directory of the other parts (text encoders, tokenizers, autoencoder, scheduler); needed
  // with a single-file transformer, and not read otherwise.
  std::filesystem::path components = {};
  // kAuto: the checkpoint's own, but float32 for bfloat16 on a CPU without AVX2, where it is slow.
  Dtype dtype = Dtype::kAuto;
  std::string device = "cpu";  // "cpu", "cuda", "cuda:1"; ROCm devices answer to cuda
  // One entry a rank, or one for all, instead of `device`; several ranks may share a device.
  // "cuda:0-3" stands for four entries.
  std::vector<std::string> devices = {};
  int threads = 0;  // CPU threads of all ranks together; 0: one a core
  Graphs graphs = Graphs::kAuto;
  Layout layout = {};
  Memory memory = {};
};

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
  std::optional<int> max_sequence_length = {};  // text tokens, 1 to 512
  std::uint64_t seed = 0;                       // picture k of the request starts from seed + k
  int num_images = 1;                           // a prompt
  int batch_size = 1;                           // pictures that are denoised together
  VaeTiling vae_tiling = VaeTiling::kAuto;
  std::optional<Latents> latents = {};
};

struct Picture {
  int width = 0, height = 0;      // pixels
  std::vector<std::uint8_t> rgb;  // row-major, three bytes a pixel
  std::string prompt;
  std::uint64_t seed = 0;
};

enum class Phase { kLoad, kText, kDenoise, kDecode };
struct Progress {
  Phase phase;
  std::int64_t done = 0, total = 0;         // bytes while loading, prompts, steps, pictures
  int first_picture = 0, num_pictures = 0;  // which pictures this step or decode is about
};

// Callbacks run on the calling thread. An exception thrown by one ends the call and passes through.
struct Hooks {
  std::function<void(const Progress&)> progress = {};
  std::function<void(Picture&)> picture = {};            // each, as soon as it is decoded
  std::function<void(const std::string&)> warning = {};  // a rounded size, a truncated prompt
  std::stop_token stop = {};  // ends the call with `Cancelled`, also within a step or a load
};

class BRAID_API Pipeline {
 public:
  // Loads everything; throws InputError naming the file and the fact when a part is not usable.
  explicit Pipeline(const PipelineOptions& options, const Hooks& hooks = {});
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;
  ~Pipeline();

  // Pictures in the order of their seeds, prompt by prompt. Where ranks are processes all make the
  // same calls; the first returns the pictures and calls the hooks, the others return none. A call
  // that throws leaves a pipeline that serves the next one, unless a rank is lost.
  std::vector<Picture> generate(const Request& request, const Hooks& hooks = {}) const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

BRAID_API std::string version();

}  // namespace braid
