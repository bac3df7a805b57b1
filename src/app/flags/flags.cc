#include "app/flags/flags.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include "app/flags/bench_flags.h"
#include "app/flags/flag_groups.h"
#include "app/flags/flag_reader.h"
#include "app/flags/flag_values.h"
#include "app/flags/plan_flags.h"
#include "app/flags/unused_flags.h"
#include "base/file.h"
#include "pipeline/devices/specs.h"

namespace braid {

std::string text_tokens_help() {
  return text_of("Text tokens, 1 to ", kLongestTextTokens, ", or fewer: as many as the model\n",
                 "reads. Default: the model's");
}
std::string planned_text_tokens_help() { return text_tokens_help() + "; of FLUX.3, 560"; }

namespace {

const char* const kProgramExamples = R"(Examples:
  braid generate "a red circle on a blue background"
  braid generate "a fox in the snow" -m ~/models/FLUX.1-dev --size 768x512 --steps 28
  braid generate --prompt-file prompts.txt -n 4 -o pictures/
  braid info braid.png)";

const char* const kGenerateExamples =
    R"(The path of each picture is printed as soon as the file is complete. Several pictures
are numbered: NAME-000.png, NAME-001.png, ... The same command makes the same picture.
A picture says how it was made: braid info FILE.

Examples:
  braid generate "a red circle on a blue background" -o circle.png
  braid generate "a green star" -n 4 --seed 7 -o stars/
  braid generate "a fox" --seed random --format jpeg -o - | ssh host "cat > fox.jpg"
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
  read.path("--boxes", "FILE", "Prompt",
            "JSON of where elements lie that the prompt cites as <id>, for\n"
            "FLUX.3: [{\"id\": ..., \"bbox\": [top, left, bottom, right],\n"
            "\"desc\": ...}, ...], coordinates from 0 to 1000 or 0 to 1",
            f.boxes);
  add_guidance_flags(read, f.request);
  read.text("--max-sequence-length", "N", "Prompt", text_tokens_help(),
            into(f.request.max_sequence_length, whole_from(1, kLongestTextTokens)));
}

void add_picture_flags(FlagReader& read, GenerateFlags& f) {
  auto& r = f.request;
  read.text("--size", "WxH", "Picture",
            "Width and height in pixels, rounded down to multiples of 16; by\n"
            "Krea 2 up, by JoyAI to a trained size; FLUX.3 takes multiples\n"
            "alone. Default: the model's",
            picture_size_into(r.width, r.height));
  read.text("--frames", "N", "Picture",
            "Frames of a clip, for models that draw clips.\nDefault: the model's",
            into(r.frames, whole_from(1, kMostFrames)));
  add_layers_flag(read, r.layers, "Picture",
                  "Layers that --reference is taken apart into, by Qwen-Image-Layered;\n"
                  "each becomes a picture with alpha, from the lowest up. Default: 4");
  read.text("--steps", "N", "Picture", "Denoising steps, 1 to 10000. Default: the model's",
            into(r.steps, whole_from(1, kMostSteps)));
  add_sampling_flags(read, r.sampling);
  read.text("--guidance", "SCALE", "Picture",
            "How closely to follow the prompt, on the model's own scale;\n"
            "ignored by models without guidance. Z-Image and Krea 2 add so\n"
            "many times the difference to the prompt's velocity: 0 is off,\n"
            "the usual scale is one more. Default: the model's",
            into(r.guidance, finite_number));
  read.text("--seed", "N", "Picture",
            "Seed of the first picture, 0 to 2^64-1; the next ones take N+1,\n"
            "N+2, ... random or -1: another one each time. Default: 0",
            [&](const std::string& flag, const std::string& text) {
              f.is_seed_random = text == "random" || text == "-1";
              if (!f.is_seed_random) r.seed = seed_number(flag, text);
            });
  read.text("-n,--num-images", "N", "Picture", "Pictures for each prompt. Default: 1",
            into(r.num_images, whole_from(1, kMostPictures)));
  read.text("--batch-size", "N", "Picture",
            "Pictures denoised together: faster, but takes more memory.\n"
            "Default: 1",
            into(r.batch_size, whole_from(1, kMostPictures)));
}

// Only digits are a picture's number; other names may have a '=' as well.
void read_latents_flag(const std::string& flag, const std::string& text, GenerateFlags& f) {
  require(!text.empty(), flag, " should be a path, it is empty");
  const auto [file, number] = numbered_file(text);
  const bool is_numbered = number && !file.empty() && !number->empty() &&
                           number->find_first_not_of("0123456789") == number->npos;
  f.latents = is_numbered ? file : text;
  f.latents_picture.reset();
  if (is_numbered) f.latents_picture = int(whole_number(flag, *number, 1, kMostPictures));
}

void add_file_flags(FlagReader& read, GenerateFlags& f) {
  read.path("-o,--output", "PATH", "Files",
            "The picture; a folder for it: an existing one, or a name that ends\n"
            "in /, which is created; or - for standard output.\n"
            "Default: braid.png, or braid-001.png, ... where that exists",
            f.output.path);
  read.text("--overwrite", "WHEN", "Files",
            "Replace existing files: never, always, or number to give new\n"
            "pictures the next free number. Default: always for a named file,\n"
            "number in folders and without --output",
            [&](const std::string& flag, const std::string& text) {
              f.output.overwrite = choice<Overwrite>(flag, text,
                                                     {{"never", Overwrite::kNever},
                                                      {"always", Overwrite::kAlways},
                                                      {"number", Overwrite::kNumber}});
            });
  read.text("--format", "FORMAT", "Files",
            "png, jpeg or webp; all say how the picture was made. Default: that\n"
            "of --output's extension, or png",
            [&](const std::string& flag, const std::string& text) {
              using Format = FileForm::Format;
              f.output.format = choice<Format>(flag, text,
                                               {{"png", Format::kPng},
                                                {"jpeg", Format::kJpeg},
                                                {"jpg", Format::kJpeg},
                                                {"webp", Format::kWebp}});
            });
  read.text("--quality", "N", "Files", "0 to 100, of a JPEG or WebP. Default: 100",
            [&](const std::string& flag, const std::string& text) {
              f.output.quality = int(whole_number(flag, text, 0, 100));
            });
  read.text(
      "--latents", "FILE[=N]", "Files",
      "Start from the noise in this safetensors file (its tensor\n"
      "'latents' or 'latents_initial', or its only one). =N takes that\n"
      "of its picture N alone, from 1 on",
      [&](const std::string& flag, const std::string& text) { read_latents_flag(flag, text, f); });
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
  add_enhancer_flags(read, f.enhancer, "Have prompts rewritten before they are drawn, by\n");
  add_picture_flags(read, f);
  add_input_picture_flags(read, f.pictures);
  add_file_flags(read, f);
  add_model_flags(read, f.options);
  add_controlnet_flag(read, f.options.controlnets);
  add_redux_flag(read, f.options);
  add_adapter_flags(read, f.options);
  add_machine_flags(read, f.options);
  add_graph_flag(read, f.options);
  add_text_stream_flag(read, f.options);
  add_layout_flags(read, f.options.layout);
  add_text_and_vae_layout_flags(read, f.options.layout);
  add_auto_layout_flag(read, f.options.layout);
  add_preset_flag(read, f.options.memory,
                  "none, plus\n"
                  "--offload as needed to fit the weights on a GPU");
  add_memory_flags(read, f.options.memory, f.stated, Bits::kMayBeLeftOpen);
  add_budget_flags(read, f.options.memory);
  add_cache_flags(read, f.options.cache);
  add_decoder_flags(read, f.request.vae_tiling);
  add_talk_flags(read, f);
}

bool has_prompts(const GenerateFlags& f) { return f.prompt || !f.prompt_file.empty(); }

// A person trying the command gets this; programs get the same error from check_together().
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
  require(!f.json || f.output.path != "-",
          "--json and --output - both write to standard output: give a file for the picture");
  check_together(f.enhancer);
  require(f.enhancer.url.empty() || f.boxes.empty() || f.prompt_file.empty(),
          "--boxes are of one prompt: --enhancer writes them anew for each of --prompt-file");
  check_auto_layout(f.options.layout);
  check_budget(f.options.memory);
  check_pictures_in(f.pictures, f.options);
}

void add_info_flags(FlagReader& read, std::optional<std::string>& file, InfoFlags& f) {
  read.positional("FILE", "A picture (PNG, JPEG, WebP), a LoRA, or weights (.safetensors,\n.gguf)",
                  file);
  add_model_flags(read, f.options);
  read.flag("--presets", "Machine", "List the presets of how and where weights are stored",
            f.presets);
  read.flag("--json", "Output", "Print one JSON object", f.json);
  read.flag("-v,--verbose", "Output", "Show a model's whole configuration, and that of the machine",
            f.verbose);
}

// One command of the line. The reader refers to its flags.
template <class Flags>
struct Command {
  Command(CLI::App& app, const char* name, const char* help, const char* examples = "")
      : parser(*app.add_subcommand(name, help)), read(parser) {
    parser.footer(examples);
  }
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  CLI::App& parser;
  FlagReader read;
  Flags flags = {};
};

void add_all(std::vector<std::string>& sentences, std::vector<std::string> more) {
  for (auto& sentence : more) sentences.push_back(std::move(sentence));
}

// These commands offload what a GPU has no room for.
template <class Flags>
std::vector<std::string> unused_flags(const Flags& flags, const FlagReader& read) {
  auto unused = unused_memory_flags(flags.options, flags.stated, Fit::kAuto);
  add_all(unused, unused_cache_flags(flags.options.cache, read.given()));
  add_all(unused, unused_layout_flags(flags.options));
  return unused;
}

// The one rank that a layout is compared with is paged if it is larger than its memory.
std::vector<std::string> unused_flags(const VerifyFlags& flags) {
  const auto& denoiser = flags.denoiser;
  auto options = denoiser.pipeline;
  auto stated = denoiser.stated;
  options.memory.budget.device = flags.options.device_bytes;
  if (options.memory.preset == "none") options.memory.preset.clear();
  stated.transformer = stated.text = stated.vae = false;
  auto unused = unused_memory_flags(options, stated, Fit::kAuto);
  add_all(unused, unused_layout_flags(options));
  add_all(unused, unused_request_flags(options, flags.pictures));
  return unused;
}

CommandLine finished(Command<GenerateFlags>& generate) {
  auto& flags = generate.flags;
  generate.read.finish();
  if (!has_prompts(flags) && ::isatty(STDERR_FILENO)) return how_to_generate();
  check_together(flags);
  flags.unused = unused_flags(flags, generate.read);
  add_all(flags.unused, unused_request_flags(flags.options, flags.pictures));
  return flags;
}

CommandLine finished(Command<ServeFlags>& serve) {
  serve.read.finish();
  check_together(serve.flags, serve.read.given());
  serve.flags.unused = unused_flags(serve.flags, serve.read);
  return serve.flags;
}

CommandLine finished(Command<VerifyFlags>& verify) {
  verify.read.finish();
  check_synthetic_flags(verify.read.given());
  verify.flags.unused = unused_flags(verify.flags);
  return verify.flags;
}

CommandLine finished(Command<ConvertFlags>& convert) {
  convert.read.finish();
  check_together(convert.flags);
  convert.flags.unused = unused_convert_flags(convert.flags.options.memory, convert.flags.stated);
  return convert.flags;
}

CommandLine finished(Command<PullFlags>& pull) {
  pull.read.finish();
  check_together(pull.flags);
  return pull.flags;
}

CommandLine finished(Command<ModelsFlags>& models) {
  models.read.finish();
  return models.flags;
}

CommandLine finished(Command<PlanFlags>& plan) {
  plan.read.finish();
  plan.flags.unused = unused_memory_flags(plan.flags.options, plan.flags.stated, Fit::kAsAsked);
  return plan.flags;
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  CLI::App app("Braid makes pictures from prompts with FLUX-class diffusion models.", "braid");
  app.footer(kProgramExamples);
  app.set_version_flag("-V,--version", "braid " + version(), "Print the version");
  Command<GenerateFlags> generate(app, "generate", "Make pictures from a prompt",
                                  kGenerateExamples);
  add_generate_flags(generate.read, generate.flags);
  Command<InfoFlags> info(app, "info",
                          "Describe this machine, a model, weights, or how a picture was made");
  std::optional<std::string> file;
  add_info_flags(info.read, file, info.flags);
  Command<ServeFlags> serve(app, "serve", "Answer requests for pictures over HTTP", kServeExamples);
  add_serve_flags(serve.read, serve.flags);
  Command<VerifyFlags> verify(app, "verify", "Prove that a layout computes what one rank computes",
                              kVerifyExamples);
  add_verify_flags(verify.read, verify.flags);
  Command<ConvertFlags> convert(app, "convert", "Write a model in another form", kConvertExamples);
  add_convert_flags(convert.read, convert.flags);
  Command<PlanFlags> plan(app, "plan", "Predict what each layout of some devices takes",
                          kPlanExamples);
  add_plan_flags(plan.read, plan.flags);
  Command<BenchFlags> bench(app, "bench", "Time an evaluation of the transformer", kBenchExamples);
  BenchLine line;
  add_bench_flags(bench.read, line, bench.flags);

  Command<PullFlags> pull(app, "pull", "Load a model from Hugging Face's hub", kPullExamples);
  add_pull_flags(pull.read, pull.flags);
  Command<ModelsFlags> models(app, "models", "List the models that are here");
  add_models_flags(models.read, models.flags);

  if (auto text = parse_with(app, argc, argv)) return *std::move(text);
  if (generate.parser.parsed()) return finished(generate);
  if (serve.parser.parsed()) return finished(serve);
  if (verify.parser.parsed()) return finished(verify);
  if (convert.parser.parsed()) return finished(convert);
  if (plan.parser.parsed()) return finished(plan);
  if (bench.parser.parsed()) {
    finish_bench_flags(bench.read, line, bench.flags);
    return bench.flags;
  }
  if (pull.parser.parsed()) return finished(pull);
  if (models.parser.parsed()) return finished(models);
  info.read.finish();
  require(!file || !file->empty(), "braid info takes a file, its name is empty");
  info.flags.file = file.value_or("");
  return info.flags;
}

}  // namespace braid
