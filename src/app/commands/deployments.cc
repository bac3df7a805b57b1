#include "app/commands/deployments.h"

#include <algorithm>
#include <iostream>

#include "app/machine/bundled_model.h"
#include "app/machine/launched.h"
#include "app/print/failure.h"
#include "app/words/readable.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hub_cache.h"
#include "pipeline/families/description.h"
#include "serve/body/picture_request.h"

namespace braid {
namespace {

PipelineOptions on_launched_ranks(PipelineOptions options) {
  options.layout.ranks = Ranks::kProcesses;  // threads, if no launcher started this program
  return options;
}

PipelineOptions fitted(PipelineOptions options) {
  options.memory.fit = Fit::kAuto;
  return on_launched_ranks(std::move(options));
}

// Files were chosen that were not asked for by name.
void say_choice(const std::string& choice) {
  std::cerr << "braid: " << one_line(with_flags(choice)) << '\n';
}

void warn_here(const std::string& sentence) { warn_of({with_flags(sentence)}); }

// Random weights have the shapes of one transformer, and no files beside it.
void check_synthetic(const DenoiserFlags& f) {
  const auto& o = f.pipeline;
  const std::pair<bool, const char*> files[] = {
      {!o.model.empty(), "--model"},       {!o.components.empty(), "--components"},
      {!o.comfy.empty(), "--comfy"},       {!o.text_encoder_files.empty(), "--text-encoder-file"},
      {!o.vae_file.empty(), "--vae-file"}, {!o.controlnets.empty(), "--controlnet"},
      {!o.redux.empty(), "--redux"}};
  for (const auto& [is_given, flag] : files)
    require(!is_given, "--synthetic takes random weights in place of files: it cannot be given ",
            "with ", flag);
}

Deployment deployed_denoiser(const DenoiserFlags& f, const std::string& command) {
  if (!f.synthetic.empty()) check_synthetic(f);
  auto options = f.synthetic.empty() ? with_bundled(f.pipeline) : f.pipeline;
  return deploy({.pipeline = on_launched_ranks(std::move(options)),
                 .stated = f.stated,
                 .synthetic = f.synthetic,
                 .blocks = f.blocks,
                 .command = command,
                 .say = say_choice,
                 .warn = warn_here});
}

bool is_in_hub(const std::filesystem::path& model) {
  const auto name = hub_name(model.string());
  return name && !find_in_hub(*name, hub_cache()).empty();
}

bool are_cpus(const std::vector<DeviceSpec>& devices) {
  return std::all_of(devices.begin(), devices.end(),
                     [](const DeviceSpec& device) { return device.name == "cpu"; });
}

}  // namespace

void warn_of(const std::vector<std::string>& unused) {
  if (!is_first_rank()) return;
  for (const auto& sentence : unused) std::cerr << "braid: warning: " << one_line(sentence) << '\n';
}

Deployment deployed(const GenerateFlags& flags, const Request& request, const Warn& say,
                    const Warn& warn) {
  auto options = fitted(with_bundled(flags.options));
  options.condition_cache = 0;  // there is no later request, and a budget does not count it
  return deploy({.pipeline = std::move(options),
                 .stated = flags.stated,
                 .request = request,
                 .command = "generate",
                 .say = say,
                 .warn = warn});
}

Deployment deployed(const ServeFlags& flags, const std::filesystem::path& model, const Warn& warn) {
  auto options = flags.options;
  options.model = model;
  if (!flags.lora_folder.empty()) options.adapter_mode = AdapterMode::kUnmerged;
  const auto typical = [&](const Family& family) -> Request {
    const auto size = serve::default_size(info_of(family.description()), flags.bounds);
    return {.width = size.width, .height = size.height, .vae_tiling = flags.vae_tiling};
  };
  return deploy({.pipeline = fitted(with_bundled(std::move(options))),
                 .stated = flags.stated,
                 .typical = typical,
                 .command = "serve",
                 .say = say_choice,
                 .warn = warn});
}

Deployment deployed(const VerifyFlags& flags) {
  return deployed_denoiser(flags.denoiser, "verify");
}

Deployment deployed(const BenchConfiguration& configuration) {
  return deployed_denoiser(configuration.denoiser, "bench");
}

Deployment deployed(const InfoFlags& flags) {
  return deploy({.pipeline = with_bundled(flags.options), .say = say_choice, .warn = warn_here});
}

Deployment deployed(const PlanFlags& f) {
  auto options = with_bundled(f.options);
  const auto devices = devices_named("--devices", f.devices);
  options.device = are_cpus(devices) ? "cpu" : "cuda";
  options.layout = f.sharing;
  DeployOptions asked{.pipeline = options,
                      .stated = f.stated,
                      .needed = WeightsNeeded::kTransformer,
                      .say = say_choice,
                      .warn = warn_here};
  if (options.comfy.empty() && !is_there(options.model) && !is_in_hub(options.model)) {
    asked.synthetic = options.model.string();
    require(named_family(asked.synthetic) != nullptr, "there is no model at ", asked.synthetic,
            ": --model should be a path, ", list_of_named_models());
    require(options.controlnets.empty() && options.redux.empty(),
            "--controlnet and --redux need the directory of a model, not a published model's name");
  }
  return deploy(asked, described_host(devices));
}

}  // namespace braid
