#include "app/commands/plan_request.h"

#include <algorithm>

#include "app/files/bundled_model.h"
#include "app/files/input_pictures.h"
#include "app/flags/flag_groups.h"
#include "app/flags/memory_words.h"
#include "base/error.h"
#include "base/file.h"
#include "pipeline/model.h"
#include "pipeline/pictures/check_pictures.h"
#include "pipeline/settings.h"

namespace braid {
namespace {

bool is_path(const PipelineOptions& options) { return is_there(options.model); }

PlanJob job_of_options(const PipelineOptions& options) {
  const auto name = options.model.string();
  auto job = named_job(name);
  require(job || is_path(options), "there is no model at ", name, ": --model should be a path, ",
          list_of_named_models());
  if (is_path(options) || !job) return job_of_model(options);
  job->dtype = choose_dtype(options.dtype, job->dtype, at::kCUDA);
  return *job;
}

bool are_cpus(const std::vector<DeviceSpec>& devices) {
  return std::all_of(devices.begin(), devices.end(),
                     [](const DeviceSpec& device) { return device.name == "cpu"; });
}

}  // namespace

PlanJob job_of(const PlanFlags& f) {
  auto options = f.options;
  settle_model(options);
  auto job = job_of_options(options);
  job.is_on_host = are_cpus(devices_named("--devices", f.devices));
  const auto& limits = job.family->description().limits;
  const int patch = limits.size_multiple;
  PictureFlags pictures;
  pictures.init = f.init;
  pictures.references = f.references;
  const auto in = read_input_pictures(pictures).pictures;
  if (!in.references.empty())
    check_pictures({.pictures = {.references = in.references}}, limits.pictures);
  const auto size = size_without_request(in, limits);
  job.width = f.width.value_or(size.width) / patch * patch;
  job.height = f.height.value_or(size.height) / patch * patch;
  require(job.width > 0 && job.height > 0, "--size should be at least ", patch, "x", patch);
  job.pictures = planned_pictures(*job.family, in, job.size());
  job.steps = f.steps.value_or(job.steps);
  job.text_tokens = f.text_tokens.value_or(job.text_tokens);
  job.batch_size = f.batch_size;
  job.num_pictures = f.num_pictures;
  const Request guided{.true_cfg = f.true_cfg, .guidance = f.guidance};
  job.branches = f.true_cfg > 1 ? 2 : num_branches(guided, limits);
  job.layout = f.sharing;
  require_chosen_bits(f.options.memory);
  for (const auto& device : devices_named("--devices", f.devices))
    require(device.multiplies_int8 || !multiplies_codes(f.options.memory),
            no_products_of_codes(device.name, ""));
  job.memory = f.options.memory;
  require(is_path(options) || (options.controlnets.empty() && options.redux.empty()),
          "--controlnet and --redux need the directory of a model, not a published model's name");
  if (!is_path(options)) return surveyed(std::move(job));
  const auto files = find_model(options);
  return surveyed(std::move(job), &files);
}

Machine machine_of(const PlanFlags& f) {
  auto devices = devices_named("--devices", f.devices);
  if (!f.memory.empty())
    for (auto& device : devices) device.memory = bytes_named("--memory", f.memory);
  bool through_host = false;
  for (const auto& device : devices) through_host |= !device.talks_to_peers;
  const auto link = f.link.empty() ? link_of(devices) : link_named("--link", f.link, through_host);
  return {.devices = std::move(devices),
          .link = link,
          .network = link_named("--network", f.network, false),
          .devices_per_host = f.devices_per_host};
}

std::vector<PlanRemedy> find_remedies(const PlanJob& job, const Machine& machine) {
  enum Change { kNothing = 0, kEightBits = 1, kPages = 2, kFiles = 4 };
  const auto changed = [&](int changes) {
    auto other = job;
    auto& memory = other.memory;
    auto& pages = memory.offload;
    if (machine.devices.size() > 1) other.layout.text = TextRanks::kShared;
    if (changes & kEightBits) memory.quantize = memory.quantize_text = Quantize::kInt8;
    if (changes & kPages) pages.transformer = pages.text = pages.vae = OffloadMode::kBlock;
    if (changes & kFiles) pages.folder = "pages";
    return other;
  };
  const std::vector<std::vector<int>> steps = {{kNothing},
                                               {kEightBits, kPages},
                                               {kEightBits | kPages},
                                               {kPages | kFiles, kEightBits | kPages | kFiles}};
  std::vector<PlanRemedy> found;
  for (const auto& alternatives : steps) {
    for (const auto changes : alternatives) {
      auto other = changed(changes);
      auto best = plan_layouts(other, machine).front();
      if (best.fits()) found.push_back({std::move(other), std::move(best)});
    }
    if (!found.empty()) break;
  }
  return found;
}

}  // namespace braid
