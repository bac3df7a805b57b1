#include "app/flags/flags.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include "app/commands/auto_layout.h"
#include "app/flags/bench_flags.h"
#include "app/flags/flag_groups.h"
#include "app/flags/flag_reader.h"
#include "app/flags/flag_values.h"
#include "app/flags/plan_flags.h"
#include "app/flags/preset_flags.h"
#include "pipeline/planner/devices.h"

namespace braid {
namespace {

const char* const kProgramExamples = R"(Examples:
  braid generate "a red circle on a blue background"
  braid generate "a fox in the snow" -m ~/models/FLUX.1-dev --size 768x512 --steps 28
  braid generate --prompt-file prompts.txt -n 4 -o pictures/
  braid info braid.png)";

const char* const kGenerateExamples =
    R"(The path of each picture is printed as soon as the file is complete. Several pictures
are numbered: NAME-000.png, NAME-001.png, ... The same command makes the same picture.

Examples:
  braid generate "a red circle on a blue background" -o circle.png
  braid generate "a green star" -n 4 --seed 7 -o stars/
  braid generate "a cat" --negative-prompt "blurry" --true-cfg 4 --size 512x512
  braid generate "a fox" -m flux1-dev.safetensors --components ~/models/FLUX.1-dev)";

void add_prompt_flags(FlagReader& read, GenerateFlags& f) {
  read.positional("PROMPT", "What the picture should show, in quotes", f.prompt);
  read.text("--prompt-file", "FILE", "Prompt",
            "Prompts, one per line, instead of PROMPT; empty lines are\n"
            "skipped, - is standard input",
            [&](const std::string& flag, const std::string& text) {
              require(!text.empty(), flag, " should be a file or -, it is empty");
              f.prompt_file = text;
            });
  read.text("--prompt-2", "TEXT", "Prompt", "A separate prompt for the second text encoder",
            into(f.prompt_2, plain_text));
  add_guidance_flags(read, f.request);
  read.text("--max-sequence-length", "N", "Prompt", "Text tokens, 1 to 4096. Default: the model's",
            into(f.request.max_sequence_length, whole_from(1, kMostTextTokens)));
}

void add_picture_flags(FlagReader& read, Request& r) {
  read.text("--size", "WxH", "Picture",
            "Width and height in pixels, rounded down to multiples of 16.\n"
            "Default: the model's",
            picture_size_into(r.width, r.height));
  read.text("--steps", "N", "Picture", "Denoising steps, 1 to 10000. Default: the model's",
            into(r.steps, whole_from(1, kMaxSteps)));
  read.text("--guidance", "SCALE", "Picture",
            "How closely to follow the prompt, on the model's own scale;\n"
            "ignored by models without guidance. Default: the model's",
            into(r.guidance, finite_number));
  read.text("--seed", "N", "Picture",
            "Seed of the first picture, 0 to 2^64-1; the next ones take N+1,\n"
            "N+2, ... Default: 0",
            into(r.seed, seed_number));
  read.text("-n,--num-images", "N", "Picture", "Pictures for each prompt. Default: 1",
            into(r.num_images, whole_from(1, kMaxPictures)));
  read.text("--batch-size", "N", "Picture",
            "Pictures denoised together: faster, but takes more memory.\n"
            "Default: 1",
            into(r.batch_size, whole_from(1, kMaxPictures)));
}

void add_file_flags(FlagReader& read, GenerateFlags& f) {
  read.path("-o,--output", "PATH", "Files",
            "The picture, or a folder for it: an existing one, or a name that\n"
            "ends in /, which is created. Existing files are replaced.\n"
            "Default: braid.png",
            f.output);
  read.path("--latents", "FILE", "Files",
            "Start from the noise in this safetensors file (its tensor\n"
            "'latents' or 'latents_initial', or its only one)",
            f.latents);
  read.path("--dump", "FILE", "Files",
            "Also write embeddings, noise levels, latents and the first\n"
            "velocity as float32 safetensors",
            f.dump);
}

void add_talk_flags(FlagReader& read, GenerateFlags& f) {
  read.flag("--json", "Output", "Print one JSON object when done, instead of the paths", f.json);
  read.action("-q,--quiet", "Output", "Print no progress and no warnings",
              [&] { f.verbosity = Verbosity::kQuiet; });
  read.action("-v,--verbose", "Output", "Also report what was chosen, and where an error arose",
              [&] { f.verbosity = Verbosity::kVerbose; });
}

void add_generate_flags(FlagReader& read, GenerateFlags& f) {
  add_prompt_flags(read, f);
  add_picture_flags(read, f.request);
  add_input_picture_flags(read, f.pictures);
  add_file_flags(read, f);
  add_model_flags(read, f.options);
  add_controlnet_flag(read, f.options.controlnets);
  add_redux_flag(read, f.options);
  add_adapter_flags(read, f.options);
  add_machine_flags(read, f.options);
  add_graph_flag(read, f.options);
  add_layout_flags(read, f.options.layout);
  add_auto_layout_flag(read, f.auto_layout);
  add_preset_flag(read, f.preset,
                  "none, plus\n"
                  "--offload as needed to fit the weights on a GPU");
  add_memory_flags(read, f.options.memory);
  add_budget_flags(read, f.options.memory);
  add_cache_flags(read, f.options.cache);
  add_decoder_flags(read, f.request.vae_tiling);
  add_talk_flags(read, f);
}

bool has_prompts(const GenerateFlags& f) { return f.prompt || !f.prompt_file.empty(); }

// For a person trying the command; programs get the same error from check_together().
ShowText how_to_generate() {
  return {.text = text_of("braid: there is no prompt: say what to draw.\n\n", kGenerateExamples,
                          "\n\nbraid generate --help lists all flags.\n"),
          .was_asked_for = false};
}

void check_together(const GenerateFlags& f) {
  require(has_prompts(f),
          "there is no prompt: say what to draw, as in braid generate \"a red circle\", ",
          "or give --prompt-file FILE");
  require(!f.prompt || f.prompt_file.empty(),
          "both a prompt and --prompt-file were given: give one of them");
  check_auto_layout(f.auto_layout, f.options.layout);
  check_budget(f.options.memory);
  check_pictures_in(f.pictures, f.options);
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  CLI::App app("Braid makes pictures from prompts with FLUX-class diffusion models.", "braid");
  app.footer(kProgramExamples);
  app.set_version_flag("--version", "braid " + version(), "Print the version");
  GenerateFlags generate;
  auto& make = *app.add_subcommand("generate", "Make pictures from a prompt");
  make.footer(kGenerateExamples);
  FlagReader read_generate(make);
  add_generate_flags(read_generate, generate);

  InfoFlags info;
  auto& tell = *app.add_subcommand(
      "info", "Describe this machine, a model, weights, or how a picture was made");
  FlagReader read_info(tell);
  std::optional<std::string> file;
  read_info.positional("FILE",
                       "A picture that Braid made, a LoRA, or weights (.safetensors, .gguf)", file);
  add_model_flags(read_info, info.options);
  read_info.flag("--presets", "Machine", "List the presets of how and where weights are stored",
                 info.presets);
  read_info.flag("--json", "Output", "Print one JSON object", info.json);
  read_info.flag("-v,--verbose", "Output",
                 "Show a model's whole configuration, and that of the machine", info.verbose);

  ServeFlags serve;
  auto& offer = *app.add_subcommand("serve", "Answer requests for pictures over HTTP");
  offer.footer(kServeExamples);
  FlagReader read_serve(offer);
  add_serve_flags(read_serve, serve);

  VerifyFlags verify;
  auto& prove =
      *app.add_subcommand("verify", "Prove that a layout computes what one rank computes");
  prove.footer(kVerifyExamples);
  FlagReader read_verify(prove);
  add_verify_flags(read_verify, verify);

  ConvertFlags convert;
  auto& change = *app.add_subcommand("convert", "Write a model in another form");
  change.footer(kConvertExamples);
  FlagReader read_convert(change);
  add_convert_flags(read_convert, convert);

  PlanFlags plan;
  auto& predict = *app.add_subcommand("plan", "Predict what each layout of some devices takes");
  predict.footer(kPlanExamples);
  FlagReader read_plan(predict);
  add_plan_flags(read_plan, plan);

  BenchFlags bench;
  auto& time = *app.add_subcommand("bench", "Time an evaluation of the transformer");
  time.footer(kBenchExamples);
  FlagReader read_bench(time);
  BenchLine bench_line;
  add_bench_flags(read_bench, bench_line, bench);

  if (auto text = parse_with(app, argc, argv)) return *std::move(text);
  if (make.parsed()) {
    read_generate.finish();
    generate.preset.given = read_generate.given();
    if (!has_prompts(generate) && ::isatty(STDERR_FILENO)) return how_to_generate();
    check_together(generate);
    return generate;
  }
  if (offer.parsed()) {
    read_serve.finish();
    serve.preset.given = read_serve.given();
    check_together(serve);
    return serve;
  }
  if (prove.parsed()) {
    read_verify.finish();
    verify.preset.given = read_verify.given();
    require_chosen_bits(verify.options.pipeline.memory);
    return verify;
  }
  if (change.parsed()) {
    read_convert.finish();
    require_chosen_bits(convert.options.memory);
    check_together(convert);
    return convert;
  }
  if (time.parsed()) {
    finish_bench_flags(read_bench, bench_line, bench);
    return bench;
  }
  if (predict.parsed()) {
    read_plan.finish();
    return plan;
  }
  read_info.finish();
  info.file = file.value_or("");
  return info;
}

}  // namespace braid
