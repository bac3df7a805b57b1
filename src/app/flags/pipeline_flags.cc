#include "app/flags/flag_groups.h"

#include <algorithm>

#include "app/flags/flag_values.h"
#include "pipeline/families/family.h"

namespace braid {
namespace {

constexpr int kMaxThreads = 1024, kMaxBlocks = 1000;

// The last '=' ends the name: one that has such a sign itself is given with its scale.
Adapter adapter_of(const std::string& flag, const std::string& text) {
  const auto sign = text.rfind('=');
  const auto file = text.substr(0, sign);
  require(!file.empty(), flag, " should be FILE or FILE=SCALE, it is ", in_quotes(text));
  if (sign == std::string::npos) return {.file = file};
  return {.file = file, .scale = finite_number(flag, text.substr(sign + 1))};
}

}  // namespace

void add_model_flags(FlagReader& read, PipelineOptions& o) {
  read.path("-m,--model", "PATH", "Model",
            "A model directory in the layout of diffusers, or a single\n"
            "transformer (.safetensors, .gguf).\n"
            "Default: the small model that comes with Braid",
            o.model);
  add_component_flags(read, o);
}

void add_component_flags(FlagReader& read, PipelineOptions& o) {
  read.path("--components", "DIR", "Model",
            "Where the text encoders, tokenizers, autoencoder and scheduler\n"
            "are when --model is a single file. Default: those of the\n"
            "published model that has its shape, which come with Braid",
            o.components);
  add_comfy_flag(read, o);
  read.texts("--text-encoder-file", "FILE", "Model",
             "Weights of a text encoder in a single file, of the encoder\n"
             "that they fit; once for each",
             [&](const std::string&, const std::string& text) {
               o.text_encoder_files.emplace_back(text);
             });
  read.path("--vae-file", "FILE", "Model", "Weights of the autoencoder in a single file",
            o.vae_file);
}

void add_comfy_flag(FlagReader& read, PipelineOptions& o) {
  read.path("--comfy", "DIR", "Model",
            "A models folder of ComfyUI: --model and --lora may be names of\n"
            "files there, and text encoders and autoencoder are found there",
            o.comfy);
}

void add_controlnet_flag(FlagReader& read, std::vector<std::filesystem::path>& folders) {
  read.texts("--controlnet", "DIR", "Model",
             "The directory of a ControlNet, which follows the picture that\n"
             "--control names; may be given several times",
             [&](const std::string& flag, const std::string& text) {
               require(!text.empty(), flag, " should be a directory, it is empty");
               folders.emplace_back(text);
             });
}

void add_redux_flag(FlagReader& read, PipelineOptions& o) {
  read.path("--redux", "DIR", "Model",
            "The directory of FLUX.1 Redux, which looks at the pictures that\n"
            "--reference names",
            o.redux);
}

void add_lora_flag(FlagReader& read, std::vector<Adapter>& adapters) {
  read.texts("--lora", "FILE[=SCALE]", "Model",
             "A LoRA, DoRA, LoKr or LoHa (.safetensors) that changes the\n"
             "model; the scale may be negative, without =SCALE it is 1. May\n"
             "be given several times",
             [&](const std::string& flag, const std::string& text) {
               adapters.push_back(adapter_of(flag, text));
             });
}

void add_adapter_flags(FlagReader& read, PipelineOptions& o) {
  add_lora_flag(read, o.adapters);
  read.text("--lora-mode", "MODE", "Model",
            "auto, fused (into the weights) or beside (them, as products of\n"
            "their own). Default: auto, fused but where weights are stored\n"
            "in 8 bits",
            [&](const std::string& flag, const std::string& text) {
              o.adapter_mode = choice<AdapterMode>(flag, text,
                                                   {{"auto", AdapterMode::kAuto},
                                                    {"fused", AdapterMode::kFused},
                                                    {"beside", AdapterMode::kBeside}});
            });
}

void add_machine_flags(FlagReader& read, PipelineOptions& o) {
  read.text("--dtype", "TYPE", "Machine",
            "auto, float32, bfloat16 or float16. Default: auto, what the\n"
            "model is stored in, but float32 on a CPU without bfloat16",
            [&](const std::string& flag, const std::string& text) {
              o.dtype = choice<Dtype>(flag, text,
                                      {{"auto", Dtype::kAuto},
                                       {"float32", Dtype::kFloat32},
                                       {"bfloat16", Dtype::kBfloat16},
                                       {"float16", Dtype::kFloat16}});
            });
  read.text("--device", "DEVICE", "Machine",
            "cpu, cuda or cuda:N; AMD's devices are called cuda too.\n"
            "Default: cpu",
            into(o.device, plain_text));
  add_devices_flag(read, o);
  read.text("--threads", "N", "Machine", "CPU threads, 1 to 1024. Default: one a core",
            into(o.threads, whole_from(1, kMaxThreads)));
}

void add_decoder_flags(FlagReader& read, VaeTiling& tiling) {
  read.text("--vae-tiling", "WHEN", "Machine",
            "auto, on or off: decode in tiles, which takes less memory.\n"
            "Default: auto, above 2048x2048 pixels",
            [&](const std::string& flag, const std::string& text) {
              tiling = choice<VaeTiling>(
                  flag, text,
                  {{"auto", VaeTiling::kAuto}, {"on", VaeTiling::kOn}, {"off", VaeTiling::kOff}});
            });
}

void add_synthetic_flags(FlagReader& read, std::string& synthetic, std::vector<int>& blocks) {
  read.text("--synthetic", "NAME", "Model",
            "Random weights with the shapes of a published model instead of\n"
            "files: " +
                list_of_named_models(),
            into(synthetic, plain_text));
  read.text("--blocks", "N,N", "Model",
            "Blocks of a synthetic model, a number for each kind. Default: all",
            [&](const std::string& name, const std::string& text) {
              blocks.clear();
              for (const auto& number : split_at_commas(text))
                blocks.push_back(int(whole_number(name, number, 1, kMaxBlocks)));
            });
  const auto kind = [&](const char* flag, std::size_t index, const char* help) {
    read.text(flag, "N", "Model", help,
              [&blocks, index](const std::string& name, const std::string& text) {
                blocks.resize(std::max(blocks.size(), index + 1));
                blocks[index] = int(whole_number(name, text, 1, kMaxBlocks));
              });
  };
  kind("--double", 0, "Of the first kind of blocks. Default: all");
  kind("--single", 1, "Of the second kind of blocks. Default: all");
}

}  // namespace braid
