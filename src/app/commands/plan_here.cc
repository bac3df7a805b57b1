#include "app/commands/plan_here.h"

#include <limits>

#include "app/flags/memory_words.h"
#include "app/machine/hardware.h"
#include "app/words/readable.h"
#include "base/error.h"
#include "pipeline/planner/fastest.h"
#include "pipeline/planner/planner.h"
#include "pipeline/planner/slower_codes.h"

namespace braid {
namespace {

std::string megabytes_flag(const char* flag, std::int64_t bytes) {
  return bytes > 0 ? " " + std::string(flag) + " " + std::to_string(bytes / 1'000'000) + "MB" : "";
}

// The flags that make generate choose the same; it creates the files of weights it needs.
std::string flags_of_budget(const Memory& m) {
  const bool is_in_8_bits = m.quantize != Quantize::kNone || m.quantize_text != Quantize::kNone;
  return megabytes_flag("--memory", m.budget.device) +
         megabytes_flag("--host-memory", m.budget.host) +
         (is_in_8_bits ? " --quantize auto --quantize-text auto" : "");
}

}  // namespace

Budget budget_here(const std::string& device) {
  return {.device = free_bytes_of(device),
          .host = device == "cpu" ? 0 : free_bytes_of("cpu"),
          .may_quantize = true,
          .may_quantize_text = true};
}

PlanHere plan_here(Deployment deployment, const Budget& budget) {
  auto& asked = deployment.options.memory;
  asked.budget = budget;
  try {
    const auto plan = plan_memory_or_files(job_of(deployment, {}), deployment.places);
    const auto taken = text_of("takes ", readable_bytes(double(plan.device_peak)), " of the ",
                               readable_bytes(double(budget.device)), " that ",
                               deployment.places.devices.front(), " has free");
    // generate makes temporary files then
    const bool is_in_files = asked.offload.folder.empty() && !plan.memory.offload.folder.empty();
    auto memory = plan.memory;
    memory.budget = budget;
    const auto flags = is_in_files ? flags_of_budget(memory) : flags_of(plan.memory);
    const auto files = readable_bytes(double(plan.files)) + " of temporary files and";
    if (is_in_files) return {.fits = true, .sentence = taken + ", with " + files + flags};
    return {.fits = true, .sentence = taken + (flags.empty() ? "" : ", with " + flags)};
  } catch (const DoesNotFit& refusal) {
    return {.sentence = std::string("does not fit: ") + refusal.what() +
                        help_sentence(refusal, "generate")};
  }
}

std::optional<std::string> shortage_here(const Deployment& deployment, const Request& request,
                                         std::int64_t free) {
  const auto& memory = deployment.options.memory;
  const bool is_chosen = deployment.memory_plan || !memory.offload.folder.empty();
  if (free <= 0 || !deployment.is_on_host() || is_chosen) return {};
  auto as_it_is = deployment;
  as_it_is.options.memory.budget.device = std::numeric_limits<std::int64_t>::max();
  as_it_is.is_budget_implied = true;
  as_it_is.stated = {
      .transformer = true, .text = true, .vae = true, .prefetch = true, .resident = true};
  const auto predicted = plan_memory(as_it_is, request).device_peak;
  if (predicted <= free) return {};
  constexpr double kLeftAlone = 0.95;  // of what is free
  const auto amount = std::int64_t(kLeftAlone * double(free)) / 1'000'000;
  auto within = deployment;
  within.options.memory.budget.device = amount * 1'000'000;
  const auto flag = text_of("--memory ", amount, "MB");
  const auto said = text_of("this is predicted to take ", readable_bytes(double(predicted)),
                            " of memory, ", readable_bytes(double(free)), " is free here: ");
  try {
    (void)plan_memory(within, request);
    return said + flag + " keeps within that";
  } catch (const DoesNotFit& refusal) {
    if (files_would_help(refusal)) return said + flag + " keeps within that, with weights in files";
    return said + flag + " would not do" + help_sentence(refusal, "generate");
  }
}

std::optional<std::string> slower_split_here(const Deployment& d, const Request& request,
                                             const Host& host) {
  if (d.layout_plan || d.is_on_host() || d.degrees().product() == 1) return {};
  const auto slower = slower_split(job_of(d, request), d.places, host);
  if (!slower) return {};
  return text_of(layout_name(d.degrees()), " over ", slower->link.name, " (",
                 readable_bytes(slower->link.speed), "/s) is predicted to take ",
                 readable_seconds(slower->split), " a picture, ", slower->device, " alone ",
                 readable_seconds(slower->alone), ": --device ", slower->device,
                 " without degrees is faster");
}

std::optional<std::string> idle_ranks_here(const Deployment& d, const Request& request) {
  const auto refused = refused_layout(job_of(d, request), d.degrees());
  if (!refused || refused->obstacle != Obstacle::kPictures) return {};
  return refused->reason + ": such ranks only wait; a larger --num-images gives them work";
}

std::optional<std::string> slower_codes_here(const Deployment& d, const Request& request,
                                             const Host& host) {
  const auto job = job_of(d, request);
  const auto gpus = d.is_on_host() ? std::vector<Gpu>() : host.gpus();
  for (const auto& name : d.places.devices) {
    const auto gpu = gpu_named(name, gpus);
    if (!gpu && name != "cpu") continue;
    const auto by = gpu ? codes_multiplied_by(name, *gpu) : codes_multiplied_by_this_cpu();
    if (auto sentence = why_codes_are_slower(job, by)) return sentence;
  }
  return {};
}

}  // namespace braid
