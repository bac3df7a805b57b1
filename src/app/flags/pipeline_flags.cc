#include "app/flags/flag_groups.h"

#include <algorithm>

#include "app/flags/option_names.h"
#include "pipeline/devices/rank_threads.h"
#include "pipeline/families/family.h"

namespace braid {
namespace {

constexpr int kMaxBlocks = 1000;

Adapter adapter_of(const std::string& flag, const std::string& text) {
  const auto [file, scale] = numbered_file(text);
  require(!file.empty(), flag, " should be FILE or FILE=SCALE, it is ", in_quotes(text));
  return {.file = file, .scale = scale ? finite_number(flag, *scale) : 1};
}

}  // namespace

void add_model_flags(FlagReader& read, PipelineOptions& o) {
  read.path("-m,--model", "PATH", "Model",
            "A model directory in diffusers layout, a single transformer or a\n"
            "checkpoint with all parts (.safetensors, .gguf), or org/name[@rev]\n"
            "in Hugging Face's cache.\n"
            "Default: the small model that comes with Braid",
            o.model);
  add_component_flags(read, o);
}

void add_component_flags(FlagReader& read, PipelineOptions& o) {
  read.path("--components", "DIR", "Model",
            "Directory of the text encoders, tokenizers, autoencoder and\n"
            "scheduler, if --model is a single file, or a published model's\n"
            "name (Z-Image-Turbo). Default: those that come with Braid, of the\n"
            "published model with the same shape",
            o.components);
  add_comfy_flag(read, o);
  read.texts("--text-encoder-file", "FILE", "Model",
             "Weights of a text encoder in a single file, used for the encoder\n"
             "that they fit; give one for each encoder",
             [&](const std::string& flag, const std::string& text) {
               require(!text.empty(), flag, " should be a path, it is empty");
               o.text_encoder_files.emplace_back(text);
             });
  read.path("--vae-file", "FILE", "Model", "Weights of the autoencoder in a single file",
            o.vae_file);
}

void add_comfy_flag(FlagReader& read, PipelineOptions& o) {
  read.path("--comfy", "DIR", "Model",
            "The models folder of ComfyUI, A1111, Forge or SwarmUI: models and\n"
            "LoRAs may be named as in it, and text encoders and autoencoder\n"
            "are looked up there, unless --components has their weights",
            o.comfy);
}

void add_controlnet_flag(FlagReader& read, std::vector<std::filesystem::path>& folders) {
  read.texts("--controlnet", "DIR", "Model",
             "Directory of a ControlNet, which follows a picture of edges, depths\n"
             "or poses, or fills a picture in; may be given several times",
             [&](const std::string& flag, const std::string& text) {
               require(!text.empty(), flag, " should be a directory, it is empty");
               folders.emplace_back(text);
             });
}

void add_redux_flag(FlagReader& read, PipelineOptions& o) {
  read.path("--redux", "DIR", "Model",
            "Directory of FLUX.1 Redux, which looks at reference pictures", o.redux);
}

void add_lora_flag(FlagReader& read, std::vector<Adapter>& adapters) {
  read.texts("--lora", "FILE[=SCALE]", "Model",
             "A LoRA, DoRA, LoKr or LoHa (.safetensors) to apply to the model;\n"
             "SCALE may be negative and defaults to 1. May be given several\n"
             "times",
             [&](const std::string& flag, const std::string& text) {
               adapters.push_back(adapter_of(flag, text));
             });
}

void add_adapter_flags(FlagReader& read, PipelineOptions& o) {
  add_lora_flag(read, o.adapters);
  read.text("--lora-mode", "MODE", "Model",
            "auto, fused (merged into the weights) or unmerged (computed next\n"
            "to them, as separate products). Default: auto, which fuses\n"
            "unless weights are stored in 8 bits",
            into(o.adapter_mode, one_of(kAdapterModes)));
}

void add_machine_flags(FlagReader& read, PipelineOptions& o) {
  read.text("--dtype", "TYPE", "Machine",
            "auto, float32, bfloat16 or float16. Default: auto, the type that\n"
            "the model is stored in, or float32 on a CPU without bfloat16",
            into(o.dtype, one_of(kDtypes)));
  read.text("--device", "DEVICE", "Machine",
            "cpu, cuda or cuda:N; AMD GPUs are called cuda, too.\n"
            "Default: cpu",
            into(o.device, plain_text));
  add_devices_flag(read, o);
  read.text("--threads", "N", "Machine", "CPU threads, 1 to 1024. Default: one per core",
            into(o.threads, whole_from(1, kMostThreads)));
}

void add_decoder_flags(FlagReader& read, VaeTiling& tiling) {
  read.text("--vae-tiling", "WHEN", "Machine",
            "auto, on or off: decode in tiles, which takes less memory.\n"
            "Default: auto, on above 2048x2048 pixels",
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
  read.text("--blocks", "N,N", "Model", "Blocks of each kind in a synthetic model. Default: all",
            [&](const std::string& name, const std::string& text) {
              blocks.clear();
              const auto each = text_of("a number in ", name, " ", text);
              for (const auto& number : split_at_commas(text))
                blocks.push_back(int(whole_number(each, number, 1, kMaxBlocks)));
            });
  const auto kind = [&](const char* flag, std::size_t index, const char* help) {
    read.text(flag, "N", "Model", help,
              [&blocks, index](const std::string& name, const std::string& text) {
                blocks.resize(std::max(blocks.size(), index + 1));
                blocks[index] = int(whole_number(name, text, 1, kMaxBlocks));
              });
  };
  kind("--double", 0, "Blocks of the first kind. Default: all");
  kind("--single", 1, "Blocks of the second kind. Default: all");
}

void check_synthetic_flags(const std::set<std::string>& given) {
  const bool counts_kinds = given.contains("--double") || given.contains("--single");
  require(!given.contains("--blocks") || !counts_kinds,
          "--blocks says all kinds of blocks: leave --double and --single out");
}

}  // namespace braid
