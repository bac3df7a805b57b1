// Braid: pictures from prompts. The library's public interface, except for the parts alone:
// transformer.h has the `Transformer`, picture_autoencoder.h the `PictureAutoencoder`.
//
//   braid::Pipeline pipeline({.model = "models/demo"});
//   const auto pictures = pipeline.generate({.prompts = {"a red circle on a blue background"}});
//
// Nothing is set for the whole process but LibTorch's number of threads: a call sets it and puts it
// back, and a thread of the program that first asks for it meanwhile may get the call's.
//
// Any number of threads may share a pipeline; its calls run one at a time. Stop and join them
// before main() returns: what LibTorch and the standard library destroy then, a call still uses.
// A pipeline may not be moved from or destroyed while a call of it runs, nor in a callback of that
// call.
// fork() takes none of their threads along: in a child, generate() of a pipeline made before throws
// Error, and that of a new one may hang if LibTorch has computed in the parent. Start processes
// anew, with exec.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "braid/adapter.h"
#include "braid/cache.h"
#include "braid/error.h"
#include "braid/fit.h"
#include "braid/hooks.h"
#include "braid/layout.h"
#include "braid/memory.h"
#include "braid/model_info.h"
#include "braid/numbers.h"
#include "braid/request.h"
#include "braid/sampling.h"

namespace braid {

struct PipelineOptions {
  // A model directory in the diffusers layout, a single-file transformer or a checkpoint with all
  // parts (.safetensors, .gguf), the folder of a trained transformer, or a name in Hugging Face's
  // cache: "org/name", "org/name@revision".
  std::filesystem::path model;
  // Directory of the other parts for a single-file transformer, or a name in `published`; otherwise
  // not read.
  std::filesystem::path components = {};
  // A folder of model directories without weights, such as Braid's models/published. A single file
  // given without `components` uses the directory whose shapes match it.
  std::filesystem::path published = {};
  // ComfyUI's folder or its models folder. `model` may then name a file there, or be empty if there
  // is only one; `adapters` may name its loras. Text encoders and the autoencoder that are not
  // given are looked up there: the likeliest file that fits, by name, then by size.
  std::filesystem::path comfy = {};
  // Single weight files that replace the directory's: text encoders, autoencoder.
  std::vector<std::filesystem::path> text_encoder_files = {};
  std::filesystem::path vae_file = {};
  // ControlNet directories, loaded beside the model; requests bring the control pictures.
  std::vector<std::filesystem::path> controlnets = {};
  // The FLUX.1 Redux directory; lets the model look at references.
  std::filesystem::path redux = {};
  std::vector<Adapter> adapters = {};  // LoRAs and their kin, in order of application
  AdapterMode adapter_mode = AdapterMode::kAuto;
  // kAuto: the checkpoint's dtype, but float32 instead of bfloat16 on CPUs without AVX2, where
  // bfloat16 is slow.
  Dtype dtype = Dtype::kAuto;
  std::string device = "cpu";  // "cpu", "cuda", "cuda:1"; ROCm devices are named cuda too
  // One entry per rank, or one for all, instead of `device`; ranks may share a device. "cuda:0-3"
  // stands for four entries.
  std::vector<std::string> devices = {};
  // CPU threads shared by all ranks; 0: as many as LibTorch takes for the process, which is
  // OMP_NUM_THREADS, or else one per core.
  int threads = 0;
  Graphs graphs = Graphs::kAuto;
  TextStream text_stream = TextStream::kShared;
  Layout layout = {};
  Memory memory = {};
  CacheOptions cache = {};
  // Host memory, in bytes, for embedded prompts and encoded pictures: requests that bring the same
  // ones again need no text encoder. 0: none is kept.
  std::int64_t condition_cache = std::int64_t(256) << 20;
};

class BRAID_API Pipeline {
 public:
  // Loads everything. Throws InputError naming the file and the fact if a part is unusable. Of the
  // hooks, `progress`, `warning` and `stop` count.
  explicit Pipeline(const PipelineOptions& options, const Hooks& hooks = {});
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;
  ~Pipeline();

  // Pictures in seed order, prompt by prompt. When ranks are processes, all must make the same
  // calls; the first returns the pictures and runs the hooks, the others return none. No hook is
  // kept beyond the call that it was given to. After a call that throws, the pipeline serves the
  // next one, unless a rank is lost. Throws Error in a callback of this pipeline's own call, and
  // for a pipeline that was moved from.
  std::vector<Picture> generate(const Request& request, const Hooks& hooks = {}) const;

  // The request as it would run, without running it: defaults filled in, sizes rounded, unused
  // fields left out. Throws InputError naming the field, as generate() would; of the hooks, only
  // `warning` is called.
  Request complete(const Request& request, const Hooks& hooks = {}) const;
  ModelInfo info() const;

 private:
  class BRAID_INTERNAL State;
  std::unique_ptr<State> state_;
};

BRAID_API std::string version();

// Whether mpirun, torchrun or srun started this process as one of several ranks. Throws InputError
// if the variables that say so cannot be read.
BRAID_API bool is_launched();

}  // namespace braid
