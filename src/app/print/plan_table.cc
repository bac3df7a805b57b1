#include "app/print/plan_table.h"

#include <algorithm>
#include <cstdio>

#include "app/flags/memory_words.h"
#include "app/words/readable.h"
#include "base/error.h"
#include "base/hub_cache.h"

namespace braid {
namespace {

using namespace std::literals;

constexpr std::size_t kShown = 20;

std::string duration(double seconds) {
  char text[32];
  const bool is_short = seconds < 1;
  const double value = is_short ? 1000 * seconds : seconds;
  std::snprintf(text, sizeof text,
                value < 10    ? "%.2f %s"
                : value < 100 ? "%.1f %s"
                              : "%.0f %s",
                value, is_short ? "ms" : "s");
  return text;
}

std::string plan_column(const std::string& text) { return right_aligned(text, 10); }

bool is_paged(const PlanJob& job) { return job.memory.offload.transformer != OffloadMode::kNone; }

std::string communicated(const StepTime& step) {
  double sum = 0;
  for (const auto& [axis, seconds] : step.communication) sum += seconds;
  return duration(sum);
}

std::int64_t bytes_given(const TrafficByAxis& traffic) {
  std::int64_t bytes = 0;
  for (const auto& [axis, t] : traffic) bytes += t.bytes;
  return bytes;
}

std::string row(const PlanJob& job, const PlannedLayout& l, std::size_t width) {
  auto name = layout_name(l.grid);
  name.resize(std::max(width, name.size()), ' ');
  const bool has_others = l.grid.product() > 1;
  const auto bytes_column = [&](const RankBytes& bytes) {
    return plan_column(readable_bytes(double(needed_bytes(job, bytes))));
  };
  return "  " + name + plan_column(duration(l.seconds_per_picture)) +
         plan_column(duration(l.step.total())) + plan_column(duration(l.step.compute)) +
         plan_column(duration(l.step.memory + l.step.gaps)) + plan_column(communicated(l.step)) +
         plan_column(duration(l.step.bubbles)) +
         (is_paged(job) ? plan_column(duration(l.step.copies)) : "") + bytes_column(l.first_rank) +
         (has_others ? bytes_column(l.largest_other) : plan_column("-")) +
         plan_column(readable_bytes(double(bytes_given(l.traffic)))) + "\n";
}

std::string header(const PlanJob& job, std::size_t width) {
  std::string text = "  layout";
  text.resize(2 + width, ' ');
  for (const auto* const name : {"picture", "step", "compute", "memory", "comm", "waiting",
                                 "copies", "rank 0", "others", "gives"})
    if (is_paged(job) || name != "copies"sv) text += plan_column(name);
  return text + "\n";
}

// "2 h100 of 85.9 GB, 1 rx-7600 of 8.59 GB"
std::string devices_of(const Machine& machine) {
  std::string text;
  for (auto first = machine.devices.begin(); first != machine.devices.end();) {
    const auto end = std::find_if(first, machine.devices.end(), [&](const DeviceSpec& other) {
      return other.name != first->name || other.memory != first->memory;
    });
    text += text_of(text.empty() ? "" : ", ", end - first, " ", first->name, " of ",
                    readable_bytes(first->memory));
    first = end;
  }
  return text;
}

std::string references_of(const PlannedPictures& pictures) {
  const auto tokens = pictures.reference_tokens();
  return tokens == 0 ? "" : text_of(", ", tokens, " of references");
}

std::string title(const PlanReport& r) {
  const auto& j = r.job;
  auto text =
      text_of(one_line(model_of(r)), ", ", j.width, "x", j.height, " (", j.image_tokens(),
              " image and ", j.text_tokens + j.pictures.tokens_behind_prompt, " text tokens",
              references_of(j.pictures), "), ", c10::getDtypeNames(j.dtype).first, ", ",
              plural(j.steps, "step"), ", ", plural(j.num_pictures, "picture"));
  if (j.batch_size > 1) text += text_of(" in batches of ", j.batch_size);
  if (j.branches > 1) text += ", true guidance";
  if (const auto flags = flags_of(j); !flags.empty()) text += ", " + flags;
  return text + text_of("\n", devices_of(r.machine), ", ", r.machine.link.name, " at ",
                        readable_bytes(r.machine.link.speed), "/s\n\n");
}

std::string summary(const std::vector<PlannedLayout>& layouts, std::size_t fitting) {
  auto text = text_of("\n", fitting, " of ", plural(std::int64_t(layouts.size()), "layout"),
                      fitting == 1 || layouts.size() == 1 ? " fits" : " fit");
  if (fitting > kShown) text += text_of("; the ", kShown, " fastest are shown (--all: all)");
  text += "\n";
  for (const auto& [count, example] : count_out(layouts))
    text += text_of("  ", count, count == 1 ? " is" : " are", " ruled out by ",
                    obstacle_name(example->obstacle), count == 1 ? ": " : ", such as ",
                    layout_name(example->grid), ": ", example->reason, "\n");
  return text;
}

// "with --quantize int8 (tp 4: 6.50 s a picture, 12.1 GB a device)"
std::string remedy_of(const PlanRemedy& r) {
  const auto& l = r.layout;
  const auto most =
      std::max(needed_bytes(r.job, l.first_rank), needed_bytes(r.job, l.largest_other));
  auto text = text_of("with ", flags_of(r.job), " (", layout_name(l.grid), ": ",
                      duration(l.seconds_per_picture), " a picture, ", readable_bytes(double(most)),
                      " a device");
  const bool needs_host =
      is_paged(r.job) && !r.job.is_on_host && r.job.memory.offload.folder.empty();
  if (needs_host)
    text += text_of(", ", readable_bytes(double(host_peak(r.job, l.first_rank))),
                    " of host memory a rank");
  return text + ")";
}

std::string remedies_of(const std::vector<PlanRemedy>& remedies) {
  std::string text;
  for (const auto& remedy : remedies)
    text += (text.empty() ? "\nIt would fit " : ",\n or ") + remedy_of(remedy);
  return text.empty() ? text : text + "\n";
}

}  // namespace

std::string flags_of(const PlanJob& job) {
  auto memory = flags_of(job.memory);
  const auto folder = memory.find("--offload-dir");
  if (folder != memory.npos) memory.insert(folder + "--offload-dir"sv.size(), " DIR");
  std::string text = job.layout.text == TextRanks::kShared ? "--text-encoder tp" : "";
  const auto shares = to_string(job.layout.shares);
  for (const auto& flags : {shares.empty() ? shares : "--shares " + shares, memory})
    text += (text.empty() || flags.empty() ? "" : " ") + flags;
  return text;
}

std::string model_of(const PlanReport& r) {
  return r.flags.options.model.empty() ? "demo" : model_name(r.flags.options.model);
}

const char* obstacle_name(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::kNone:
      return "nothing";
    case Obstacle::kHeads:
      return "heads";
    case Obstacle::kTokens:
      return "tokens";
    case Obstacle::kBranches:
      return "branches";
    case Obstacle::kPictures:
      return "pictures";
    case Obstacle::kBlocks:
      return "blocks";
    case Obstacle::kMemory:
      return "memory";
  }
  return "";
}

std::string plan_table(const PlanReport& report, const std::vector<PlannedLayout>& layouts) {
  const auto fitting = std::size_t(
      std::count_if(layouts.begin(), layouts.end(), [](const auto& l) { return l.fits(); }));
  const auto shown = report.flags.all ? fitting : std::min(fitting, kShown);
  std::size_t width = 8;
  for (std::size_t i = 0; i < shown; ++i)
    width = std::max(width, layout_name(layouts[i].grid).size());
  auto text = title(report);
  if (shown > 0) text += header(report.job, width);
  for (std::size_t i = 0; i < shown; ++i) text += row(report.job, layouts[i], width);
  text += summary(layouts, fitting) + remedies_of(report.remedies);
  if (const auto& alone = report.faster_alone)
    text += text_of("\nNote: one ", alone->device, " alone takes ", duration(alone->seconds),
                    " a picture, ",
                    fitting > 0 ? "less than every layout of all devices\n"
                                : "and no layout of all devices fits\n");
  if (report.slower_codes) text += "\nNote: " + *report.slower_codes + "\n";
  if (report.flags.all)
    for (const auto& layout : layouts)
      if (!layout.fits()) text += "  " + layout_name(layout.grid) + ": " + layout.reason + "\n";
  return text;
}

}  // namespace braid
