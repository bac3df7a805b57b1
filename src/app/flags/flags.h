// The parsed command line.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "app/flags/enhancer_flags.h"
#include "app/flags/picture_flags.h"
#include "app/flags/pull_flags.h"
#include "braid/braid.h"
#include "image/file_form.h"
#include "image/png.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/memory/stated.h"
#include "pipeline/proofs/bench.h"
#include "pipeline/proofs/verify.h"
#include "serve/http/http_server.h"

namespace braid {

enum class Verbosity { kQuiet, kNormal, kVerbose };

// When a file of the picture's name exists.
enum class Overwrite { kNever, kAlways, kNumber };

struct OutputFlags {
  std::filesystem::path path = {};              // "-": standard output; empty: not given
  std::optional<Overwrite> overwrite = {};      // nullopt: the path decides
  std::optional<FileForm::Format> format = {};  // nullopt: the path's extension decides
  std::optional<int> quality = {};
};

struct GenerateFlags {
  // Prompts are not in `request` yet: they may come from a file.
  std::optional<std::string> prompt, prompt_2;
  std::string prompt_file;      // "-": standard input; empty: `prompt` is set
  std::filesystem::path boxes;  // empty: none
  EnhancerFlags enhancer;
  PipelineOptions options;  // `model` is empty for the bundled model
  StatedMemory stated;
  Request request;
  PictureFlags pictures;        // not in `request` yet, either
  bool is_seed_random = false;  // `request.seed` is not it yet
  OutputFlags output;
  std::filesystem::path dump, latents;
  std::optional<int> latents_picture = {};  // the one to take of several, from 1 on
  bool json = false;
  Verbosity verbosity = Verbosity::kNormal;
  std::vector<std::string> unused = {};  // a sentence on each flag without effect
};

struct ServeFlags {
  PipelineOptions options;  // without a model
  StatedMemory stated;
  std::vector<std::filesystem::path> models;  // empty: the bundled one
  std::filesystem::path lora_folder;          // LoRAs that requests may name; empty: none
  EnhancerFlags enhancer;                     // that requests may ask for
  VaeTiling vae_tiling = VaeTiling::kAuto;
  std::filesystem::path api_key_file;
  bool no_key = false;  // explicitly asked for
  std::vector<std::string> allow_hosts, allow_origins;
  std::string base_path;                        // "/pictures"; empty: none
  std::vector<std::string> frame_ancestors;     // sources of a content security policy
  std::vector<std::vector<std::string>> names;  // by --served-model-name
  bool warns_of_unknown_fields = false;         // else they are refused
  serve::RequestBounds bounds;
  serve::ServiceOptions service;
  serve::HttpServerOptions http;  // but the longest body, which is in `bounds`
  int drain = 30;                 // seconds
  bool log_prompts = false;
  Verbosity verbosity = Verbosity::kNormal;
  std::vector<std::string> unused = {};  // a sentence on each flag without effect
};

struct InfoFlags {
  std::filesystem::path file;  // a picture, or weights
  PipelineOptions options;     // `model` is empty if none was given
  bool presets = false;
  bool json = false;
  bool verbose = false;  // with a model: its whole configuration; and this machine
};

// The model whose denoisers are verified or timed.
struct DenoiserFlags {
  PipelineOptions pipeline;  // the model is empty for the bundled one
  StatedMemory stated;
  std::string synthetic = {};    // a model known by name: random weights of its shapes, not files
  std::vector<int> blocks = {};  // for it, one count per kind; 0: all
};

struct VerifyFlags {
  DenoiserFlags denoiser;
  VerifyOptions options;
  PictureFlags pictures;  // only their sizes count
  bool json = false;
  std::vector<std::string> unused = {};  // a sentence on each flag without effect
};

struct PlanFlags {
  PipelineOptions options;  // the model: a path, a known name, or empty for the bundled one
  StatedMemory stated;
  std::optional<int> width = {}, height = {}, layers = {}, steps = {}, text_tokens = {};
  Sampling sampling = {};
  int batch_size = 1, num_pictures = 1;
  double true_cfg = 1;
  std::optional<double> guidance = {};                 // the model's own scale
  std::filesystem::path init = {};                     // empty: none
  std::vector<std::filesystem::path> references = {};  // only their sizes count
  Layout sharing = {};                                 // what is shared, without degrees
  AxisShares shares = {};                              // of layouts with these degrees
  std::string devices = "cpu", memory = {}, link = {}, network = "ethernet";
  int devices_per_host = kMostRanks;
  bool all = false, json = false;
  std::vector<std::string> unused = {};  // a sentence on each flag without effect
};

struct ConvertFlags {
  ConvertOptions options;
  StatedMemory stated;
  Verbosity verbosity = Verbosity::kNormal;
  std::vector<std::string> unused = {};  // a sentence on each flag without effect
};

struct BenchConfiguration {
  std::string setting;  // the sweeps' values: "tp 2, quantize int8"
  DenoiserFlags denoiser = {};
  BenchOptions options = {};
  PictureFlags pictures = {};  // only their sizes count
};

struct BenchFlags {
  std::vector<BenchConfiguration> configurations;  // one per combination of the sweeps
  bool is_sweep = false;                           // else there is one
  std::filesystem::path against, plot;             // empty: not asked for
  double tolerance = 0.1;
  bool json = false;
  std::vector<std::string> unused = {};  // a sentence on each flag without effect
};

struct ShowText {
  std::string text;
  bool was_asked_for;  // otherwise it says what was missing
};

using CommandLine = std::variant<ShowText, GenerateFlags, InfoFlags, VerifyFlags, PlanFlags,
                                 BenchFlags, ConvertFlags, ServeFlags, PullFlags, ModelsFlags>;

// Throws InputError naming the flag.
CommandLine parse_command_line(int argc, const char* const* argv);

}  // namespace braid
