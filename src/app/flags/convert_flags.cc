#include "app/flags/flag_groups.h"

#include "app/flags/flag_values.h"

namespace braid {

const char* const kConvertExamples =
    R"(The new model appears when it is whole and was read again; until then its files lie in
OUT.partial, with which the same command goes on when it was interrupted.

Examples:
  braid convert -m ~/models/FLUX.1-dev -o flux-int8 --quantize int8 --quantize-text int8
  braid convert -m ~/models/FLUX.1-dev -o flux-ink --lora ink.safetensors=0.8
  braid convert -m flux1-dev.safetensors --components ~/models/FLUX.1-dev -o flux
  braid convert -m ~/models/FLUX.1-dev -o flux.safetensors --single-file --dtype bfloat16)";

void add_convert_flags(FlagReader& read, ConvertFlags& f) {
  auto& o = f.options;
  read.path("-m,--model", "PATH", "Model",
            "A model directory in the layout of diffusers, or a single\n"
            "transformer (.safetensors, .gguf)",
            o.model);
  read.path("--components", "DIR", "Model", "Where the other parts are when --model is a file",
            o.components);
  add_lora_flag(read, o.adapters);
  read.path("-o,--output", "PATH", "Files", "The new directory, or file; it must not exist", o.out);
  read.action("--single-file", "Files",
              "Only the transformer, in one file with Black Forest Labs' names",
              [&] { o.form = ConvertOptions::Form::kSingleFile; });
  read.text("--dtype", "TYPE", "Machine",
            "float32, bfloat16 or float16, of the transformer and large text\n"
            "encoders.\n"
            "Default: as they are",
            [&](const std::string& flag, const std::string& text) {
              o.dtype = choice<Dtype>(flag, text,
                                      {{"float32", Dtype::kFloat32},
                                       {"bfloat16", Dtype::kBfloat16},
                                       {"float16", Dtype::kFloat16}});
            });
  add_quantize_flags(read, o.memory);
  read.action("-q,--quiet", "Talk", "No progress", [&] { f.verbosity = Verbosity::kQuiet; });
}

void check_together(const ConvertFlags& f) {
  require(!f.options.model.empty(), "there is no model to convert: give --model PATH");
  require(!f.options.out.empty(), "there is no place for the new model: give --output PATH");
}

}  // namespace braid
