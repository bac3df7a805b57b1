// Braid: pictures from prompts. The whole public interface of the library.
//
//   braid::Pipeline pipeline({.model = "models/demo"});
//   const auto pictures = pipeline.generate({.prompts = {"a red circle on a blue background"}});
//
// No global state. Any number of threads may use a pipeline; its requests wait for each other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braid/adapter.h"
#include "braid/cache.h"
#include "braid/error.h"
#include "braid/hooks.h"
#include "braid/layout.h"
#include "braid/memory.h"
#include "braid/model_info.h"
#include "braid/numbers.h"
#include "braid/request.h"

namespace braid {

struct PipelineOptions {
  // A model directory in the diffusers layout, or a single-file transformer (.safetensors, .gguf).
  std::filesystem::path model;
  // The directory of the other parts, for a single-file transformer; else not read.
  std::filesystem::path components = {};
  // A folder of model directories without weights, as models/published comes with Braid: where a
  // single file is given no components, the one of its shape is them.
  std::filesystem::path published = {};
  // A models folder of ComfyUI, or the folder of ComfyUI itself: `model` may be the name of a file
  // there, or empty where there is one, `adapters` names of its loras; text encoders and
  // autoencoder that are not given are looked for there, the largest file that fits.
  std::filesystem::path comfy = {};
  // Single files of weights instead of the directory's: of text encoders, of the autoencoder.
  std::vector<std::filesystem::path> text_encoder_files = {};
  std::filesystem::path vae_file = {};
  // Directories of ControlNets, which stand beside the model; its requests bring their pictures.
  std::vector<std::filesystem::path> controlnets = {};
  // The directory of FLUX.1 Redux, with which the model looks at references.
  std::filesystem::path redux = {};
  std::vector<Adapter> adapters = {};  // LoRAs and their kin, in the order in which they apply
  AdapterMode adapter_mode = AdapterMode::kAuto;
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
  CacheOptions cache = {};
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

  // The request as it would run, without running it: defaults filled in, sizes rounded, what is not
  // used left out. Throws InputError naming the field, as generate() would; only warnings are told.
  Request complete(const Request& request, const Hooks& hooks = {}) const;
  ModelInfo info() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

BRAID_API std::string version();

}  // namespace braid
