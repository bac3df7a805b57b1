#include "app/flags/flag_groups.h"

#include "pipeline/families/family.h"

namespace braid {

const char* const kVerifyExamples =
    R"(Compares one evaluation of the transformer on one rank with one under the layout, after
every part and from the same random inputs. Exit code 1 means that a part differs.

Examples:
  braid verify --tp 2 --ring 2
  braid verify -m ~/models/FLUX.1-dev --ulysses 4 --size 1008x1008
  braid verify --tp 2 --inject contiguous-slice
  braid verify --synthetic flux1-dev --double 1 --single 1 --tp 3 --size 512x512)";

namespace {

// What is evaluated, and how far results may differ.
void add_comparison_flags(FlagReader& read, VerifyFlags& f) {
  read.text("--size", "WxH", "Comparison", "Width and height in pixels. Default: the model's",
            [&](const std::string& flag, const std::string& text) {
              const auto size = picture_size(flag, text);
              f.options.probe.width = size.width;
              f.options.probe.height = size.height;
            });
  read.text("--max-sequence-length", "N", "Comparison", planned_text_tokens_help(),
            [&](const std::string& flag, const std::string& text) {
              f.options.probe.max_sequence_length =
                  int(whole_number(flag, text, 1, kLongestTextTokens));
            });
  add_layers_flag(read, f.options.probe.layers, "Comparison",
                  "Layers that a picture is taken apart into, by Qwen-Image-Layered.\n"
                  "Default: 4");
  add_reference_flags(read, f.pictures, "Comparison");
  read.text("--seed", "N", "Comparison", "Seed of the random inputs. Default: 0",
            [&](const std::string& flag, const std::string& text) {
              f.options.seed = seed_number(flag, text);
            });
  read.text("--tolerance", "X", "Comparison",
            "Largest difference that passes, relative to the largest value.\n"
            "Default: 1e-4 in float32, 0.05 in 16-bit types; of attention\n"
            "what these may change by rounding, 1/256 or 1/2048",
            [&](const std::string& flag, const std::string& text) {
              f.options.tolerance = finite_number(flag, text);
              require(f.options.tolerance >= 0, flag, " should be at least 0, it is ",
                      in_quotes(text));
            });
  read.text(
      "--inject", "FAULT", "Comparison",
      "Inject a known fault: contiguous-slice, zero-timestep,\n"
      "skip-reduce, drop-lse, stale-kv or rank-noise",
      [&](const std::string&, const std::string& text) { f.options.fault = fault_named(text); });
}

}  // namespace

void add_verify_flags(FlagReader& read, VerifyFlags& f) {
  auto& pipeline = f.denoiser.pipeline;
  add_layout_flags(read, pipeline.layout);
  add_preset_flag(read, pipeline.memory, "none");
  add_memory_flags(read, pipeline.memory, f.denoiser.stated, Bits::kGiven);
  read.text("--memory", "BYTES", "Memory",
            "Memory per device, such as 6GB: the single rank's transformer\n"
            "is paged if it is larger. Default: what is free on a GPU",
            [&](const std::string& flag, const std::string& text) {
              f.options.device_bytes = std::int64_t(bytes_named(flag, text));
            });
  add_model_flags(read, pipeline);
  add_controlnet_flag(read, pipeline.controlnets);
  add_redux_flag(read, pipeline);
  add_adapter_flags(read, pipeline);
  add_synthetic_flags(read, f.denoiser.synthetic, f.denoiser.blocks);
  add_machine_flags(read, pipeline);
  add_comparison_flags(read, f);
  read.flag("--json", "Output", "Print one JSON object", f.json);
}

}  // namespace braid
