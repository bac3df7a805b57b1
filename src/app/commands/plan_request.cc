#include "app/commands/plan_request.h"

#include <algorithm>

#include "app/commands/deployments.h"
#include "app/files/input_pictures.h"
#include "app/flags/flag_groups.h"
#include "app/flags/memory_words.h"
#include "app/print/plan_table.h"
#include "base/error.h"
#include "pipeline/memory/by_device.h"
#include "pipeline/request/check_pictures.h"
#include "pipeline/request/guidance_settings.h"
#include "pipeline/request/settings.h"

namespace braid {
namespace {

Request request_of(const PlanFlags& f, const RequestLimits& limits) {
  PictureFlags pictures;
  pictures.init = f.init;
  pictures.references = f.references;
  auto in = read_input_pictures(pictures).pictures;
  if (!in.references.empty())
    check_pictures({.pictures = {.references = in.references}}, limits.pictures);
  const bool is_guided = f.true_cfg > 1;
  Request request{.prompts = {""},
                  .negative_prompt = is_guided ? std::optional(std::string()) : std::nullopt,
                  .true_cfg = f.true_cfg,
                  .width = f.width,
                  .height = f.height,
                  .layers = f.layers,
                  .steps = f.steps,
                  .sampling = f.sampling,
                  .guidance = f.guidance,
                  .max_sequence_length = f.text_tokens,
                  .num_images = f.num_pictures,
                  .batch_size = f.batch_size,
                  .pictures = std::move(in)};
  Settings settings;
  settle_guidance(
      request, limits, [](const std::string&) {}, settings);
  check_size(request, limits);
  check_frames(request, limits);
  return request;
}

// Shares that no layout of so many devices has are a mistake.
void check_shares_suit(const AxisShares& shares, const std::string& devices) {
  const int ranks = int(devices_named("--devices", devices).size());
  const auto grids = grids_of(ranks);
  const auto suits = [&](const Degrees& grid) {
    return std::ranges::all_of(kAxes, [&](const Axis& axis) {
      const auto count = axis.shares ? (shares.*axis.shares).size() : 0;
      return count == 0 || int(count) == grid.*axis.degree;
    });
  };
  require(std::ranges::any_of(grids, suits), "--shares ", to_string(shares), " suits no layout of ",
          ranks, ranks == 1 ? " device" : " devices", ": the numbers of shares along all axes ",
          "should multiply to a divisor of that");
}

}  // namespace

PlanJob job_of(const PlanFlags& f) {
  require(f.true_cfg >= 0, "--true-cfg should be at least 0, it is ", f.true_cfg);
  check_shares_suit(f.shares, f.devices);
  for (const auto& device : devices_named("--devices", f.devices))
    require(device.multiplies_int8 || !asks_int8_products(f.options.memory),
            no_products_of_codes(device.name, ""));
  const auto deployment = deployed(f);
  const auto limits = deployment.family->description().limits;
  auto job = job_of(deployment, request_of(f, limits));
  require(f.true_cfg <= 1 || job.branches == 2, "--true-cfg ", f.true_cfg,
          " plans a negative prompt, which this model ",
          most_branches(limits) == 2 ? "takes by its --guidance" : "does not take");
  job.layout.shares = f.shares;
  job.layout.collectives = f.sharing.collectives;  // which a deployment of one rank has no use for
  return job;
}

Machine machine_of(const PlanFlags& f) {
  auto devices = devices_named("--devices", f.devices);
  if (!f.memory.empty())
    for (auto& device : devices) device.memory = bytes_named("--memory", f.memory);
  auto route = LinkRoute::kDirect;
  for (const auto& device : devices)
    if (!device.talks_to_peers) route = LinkRoute::kThroughHost;
  const auto link = f.link.empty() ? link_of(devices) : link_named("--link", f.link, route);
  return {.devices = std::move(devices),
          .link = link,
          .network = link_named("--network", f.network, LinkRoute::kDirect),
          .devices_per_host = f.devices_per_host};
}

std::vector<PlanRemedy> find_remedies(const PlanJob& job, const Machine& machine) {
  enum Change { kNothing = 0, kEightBits = 1, kPages = 2, kFiles = 4 };
  const auto changed = [&](int changes) {
    auto other = job;
    auto& memory = other.memory;
    auto& pages = memory.offload;
    if (machine.devices.size() > 1) other.layout.text = TextRanks::kShared;
    if (changes & kEightBits)  // forms that were asked for stay
      for (auto* form : {&memory.quantize, &memory.quantize_text})
        if (*form == Quantize::kNone) *form = Quantize::kInt8;
    if (changes & kPages) pages.transformer = pages.text = pages.vae = OffloadMode::kBlock;
    if (changes & kFiles) pages.folder = kFolderToMake;
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
      const auto is_known = [&](const PlanRemedy& r) { return flags_of(r.job) == flags_of(other); };
      if (std::ranges::any_of(found, is_known)) continue;
      auto best = plan_layouts(other, machine).front();
      if (best.fits()) found.push_back({std::move(other), std::move(best)});
    }
    if (!found.empty()) break;
  }
  return found;
}

}  // namespace braid
