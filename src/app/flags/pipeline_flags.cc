#include "app/flags/flag_groups.h"

#include <algorithm>

#include "app/flags/flag_values.h"
#include "pipeline/families/family.h"

namespace braid {
namespace {

constexpr int kMaxThreads = 1024, kMaxBlocks = 1000;

}  // namespace

void add_model_flags(FlagReader& read, PipelineOptions& o) {
  read.path("-m,--model", "PATH", "Model",
            "A model directory in the layout of diffusers, or a single\n"
            "transformer (.safetensors) together with --components.\n"
            "Default: the small model that comes with Braid",
            o.model);
  read.path("--components", "DIR", "Model",
            "Where the text encoders, tokenizers, autoencoder and scheduler\n"
            "are when --model is a single file",
            o.components);
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
            [&](const std::string&, const std::string& text) { o.device = text; });
  add_devices_flag(read, o);
  read.text("--threads", "N", "Machine", "CPU threads, 1 to 1024. Default: one a core",
            [&](const std::string& flag, const std::string& text) {
              o.threads = int(whole_number(flag, text, 1, kMaxThreads));
            });
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
            [&](const std::string&, const std::string& text) { synthetic = text; });
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
