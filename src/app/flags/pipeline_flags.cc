#include "app/flags/flag_groups.h"

#include "app/flags/flag_values.h"

namespace braid {
namespace {

constexpr int kMaxThreads = 1024, kMaxBlocks = 1000;

}  // namespace

void add_model_flags(FlagReader& read, PipelineOptions& o) {
  read.path("-m,--model", "PATH", "Model",
            "A model directory in the layout of diffusers, or a single\n"
            "FLUX transformer (.safetensors) together with --components.\n"
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

void add_synthetic_flags(FlagReader& read, std::string& synthetic, int& num_double,
                         int& num_single) {
  read.text("--synthetic", "NAME", "Model",
            "Random weights with the shapes of flux1-dev or flux1-schnell\n"
            "instead of a model's files",
            [&](const std::string&, const std::string& text) { synthetic = text; });
  const auto blocks = [&](const char* flag, const char* help, int& number) {
    read.text(flag, "N", "Model", help,
              [&number](const std::string& name, const std::string& text) {
                number = int(whole_number(name, text, 1, kMaxBlocks));
              });
  };
  blocks("--double", "Double blocks of a synthetic model. Default: all, 19", num_double);
  blocks("--single", "Single blocks of a synthetic model. Default: all, 38", num_single);
}

}  // namespace braid
