#include "app/flags/flag_groups.h"

#include "app/flags/option_names.h"
#include "weights/files/folder_files.h"

namespace braid {

const char* const kConvertExamples =
    R"(The new model appears once it is complete and has been read back; until then its files are
in OUT.partial, from which the same command resumes after an interruption.

Examples:
  braid convert -m ~/models/FLUX.1-dev -o flux-int8 --quantize int8 --quantize-text int8
  braid convert -m ~/models/FLUX.1-dev -o flux-ink --lora ink.safetensors=0.8
  braid convert -m flux1-dev.safetensors --components ~/models/FLUX.1-dev -o flux
  braid convert -m ~/models/FLUX.1-dev -o flux.safetensors --single-file --dtype bfloat16)";

void add_convert_flags(FlagReader& read, ConvertFlags& f) {
  auto& o = f.options;
  read.path("-m,--model", "PATH", "Model",
            "A model directory in diffusers layout, or a single transformer\n"
            "(.safetensors, .gguf)",
            o.model);
  read.path("--components", "DIR", "Model",
            "Directory of the other parts, if --model is a single file", o.components);
  add_lora_flag(read, o.adapters);
  read.path("-o,--output", "PATH", "Files", "The new directory or file, which must not exist yet",
            o.out);
  read.action("--single-file", "Files",
              "Only the transformer, in one file with Black Forest Labs' names",
              [&] { o.form = ConvertOptions::Form::kSingleFile; });
  read.text("--dtype", "TYPE", "Machine",
            "float32, bfloat16, float16 or auto (each number as it is stored, those\n"
            "of 8 bits in bfloat16), for the transformer and the large text\n"
            "encoders. Default: auto",
            into(o.dtype, one_of(kDtypes)));
  read.flag("--used-layers", "Files",
            "Of language models, write only the layers that Braid runs: smaller,\n"
            "but not for other programs",
            o.only_used_layers);
  add_quantize_flags(read, o.memory, f.stated, Bits::kGiven);
  read.action("-q,--quiet", "Output", "Print no progress and no warnings",
              [&] { f.verbosity = Verbosity::kQuiet; });
}

void check_together(const ConvertFlags& f) {
  require(!f.options.model.empty(), "there is no model to convert: give --model PATH");
  const auto& out = f.options.out;
  require(!out.empty(), "there is no path for the new model: give --output PATH");
  require(out != "-", "--output - is no path: standard output takes no model");
  const bool is_directory = f.options.form != ConvertOptions::Form::kSingleFile;
  require(!is_directory || !is_weights_name(out), out.string(),
          " is named as a file, a directory is written: give --single-file or another name");
}

}  // namespace braid
