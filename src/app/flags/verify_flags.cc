#include "app/flags/flag_groups.h"

#include "app/flags/preset_flags.h"
#include "pipeline/families/family.h"

namespace braid {

const char* const kVerifyExamples =
    R"(One evaluation of the transformer on one rank and one under the layout, from the same
random inputs, are compared after every part. Exit code 1 says that a part differs.

Examples:
  braid verify --tp 2 --ring 2
  braid verify -m ~/models/FLUX.1-dev --ulysses 4 --size 1008x1008
  braid verify --tp 2 --inject contiguous-slice
  braid verify --synthetic flux1-dev --double 1 --single 1 --tp 3 --size 512x512)";

void add_verify_flags(FlagReader& read, VerifyFlags& f) {
  add_layout_flags(read, f.options.pipeline.layout);
  add_preset_flag(read, f.preset, "none");
  add_memory_flags(read, f.options.pipeline.memory);
  read.text("--memory", "BYTES", "Memory",
            "Of each device, as 6GB: the transformer of the one rank that\n"
            "is compared with is paged where it is larger. Default: what is\n"
            "free on a GPU",
            [&](const std::string& flag, const std::string& text) {
              f.options.device_bytes = std::int64_t(bytes_named(flag, text));
            });
  add_model_flags(read, f.options.pipeline);
  add_controlnet_flag(read, f.options.pipeline.controlnets);
  add_redux_flag(read, f.options.pipeline);
  add_adapter_flags(read, f.options.pipeline);
  add_synthetic_flags(read, f.options.synthetic, f.options.blocks);
  add_machine_flags(read, f.options.pipeline);
  read.text("--size", "WxH", "Proof", "Width and height in pixels. Default: the model's",
            [&](const std::string& flag, const std::string& text) {
              const auto size = picture_size(flag, text);
              f.options.width = size.width;
              f.options.height = size.height;
            });
  read.text("--max-sequence-length", "N", "Proof", "Text tokens, 1 to 4096. Default: the model's",
            [&](const std::string& flag, const std::string& text) {
              f.options.max_sequence_length = int(whole_number(flag, text, 1, kMostTextTokens));
            });
  add_looked_at_flags(read, f.pictures, "Proof");
  read.text("--seed", "N", "Proof", "Of the random inputs. Default: 0",
            [&](const std::string& flag, const std::string& text) {
              f.options.seed = seed_number(flag, text);
            });
  read.text("--tolerance", "X", "Proof",
            "Largest difference that passes, relative to the largest value.\n"
            "Default: 1e-4 in float32, 0.05 in shorter types",
            [&](const std::string& flag, const std::string& text) {
              f.options.tolerance = finite_number(flag, text);
            });
  read.text(
      "--inject", "FAULT", "Proof",
      "Make a known mistake on purpose: contiguous-slice,\n"
      "zero-timestep, skip-reduce, drop-lse, stale-kv or rank-noise",
      [&](const std::string&, const std::string& text) { f.options.fault = fault_named(text); });
  read.flag("--json", "Talk", "Print one JSON object", f.json);
}

}  // namespace braid
