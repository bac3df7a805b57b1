#include "app/print/report.h"

#include <cmath>

#include "app/flags/flag_groups.h"
#include "app/flags/memory_words.h"
#include "app/flags/option_names.h"
#include "comm/mesh.h"
#include "pipeline/deployment/degrees.h"
#include "pipeline/devices/devices.h"
#include "pipeline/engine/engine.h"

namespace braid {
namespace {

OrderedJson files_of(const std::vector<SavedPicture>& pictures) {
  auto files = OrderedJson::array();
  for (const auto& picture : pictures) {
    files.push_back(
        {{"path", picture.path.string()}, {"prompt", picture.prompt}, {"seed", picture.seed}});
    if (!picture.original_prompt.empty()) files.back()["original_prompt"] = picture.original_prompt;
  }
  return files;
}

// Rounded to microseconds; a clock on a shared machine is less exact than that.
double rounded(double seconds) { return std::round(seconds * 1e6) / 1e6; }

// `startup` is from the program's start to its first kernel, loading included.
OrderedJson seconds_of(const RunReport& r) {
  const auto& phases = r.facts.phases;
  const auto since_start = [&](PhaseLog::Clock::time_point time) {
    return rounded(seconds_between(r.program_began, time));
  };
  OrderedJson seconds;
  for (const auto phase : kPhases)
    seconds[phase_name(phase)] =
        rounded(phase == Phase::kLoad ? r.facts.load.seconds : phases.seconds(phase));
  const auto first = phases.began(Phase::kText);
  seconds["startup"] = first ? since_start(*first) : 0;
  seconds["total"] = since_start(PhaseLog::Clock::now());
  return seconds;
}

OrderedJson by_phase(const BytesByPhase& bytes) {
  OrderedJson json = OrderedJson::object();
  for (const auto phase : kPhases) json[phase_name(phase)] = bytes[std::size_t(phase)];
  return json;
}

OrderedJson peaks_of_first(const MeasuredPeaks& peaks) {
  OrderedJson json = {{"start", peaks.start_bytes}};
  if (!peaks.ranks.empty()) json.update(by_phase(peaks.ranks.front().resident));
  return json;
}

OrderedJson bytes_read_of(const std::vector<BytesRead>& ranks) {
  auto list = OrderedJson::array();
  for (const auto& read : ranks) list.push_back({{"all", read.all}, {"strided", read.strided}});
  return list;
}

OrderedJson link_json(const LinkUse& use) {
  if (use.over.empty()) return {};
  OrderedJson json = {{"over", use.over}};
  if (!use.why_not.empty()) json["why_not"] = use.why_not;
  return json;
}

OrderedJson settings_of(const Settings& s) {
  OrderedJson json = {
      {"seed", s.seed},
      {"size", {{"width", s.width}, {"height", s.height}}},
      {"steps", s.steps},
      {"sampler", sampling_name(kSamplers, s.sampling.sampler.value_or(Sampler::kEuler))},
      {"guidance", s.guidance},
      {"true_cfg", s.true_cfg}};
  json["schedule"] =
      sampling_name(kSigmaSchedules, s.sampling.schedule.value_or(SigmaSchedule::kModel));
  if (!s.sampling.sigmas.empty()) json["sigmas"] = s.sampling.sigmas;
  if (!s.sampling.base_sigmas.empty()) json["base_sigmas"] = s.sampling.base_sigmas;
  if (s.sampling.shift) json["shift"] = *s.sampling.shift;
  json["negative_prompt"] = s.negative ? OrderedJson(s.negative->text) : OrderedJson();
  json["guidance_rescale"] = s.true_guidance.rescale;
  json["cfg_norm_cap"] = s.true_guidance.norm_cap;
  if (s.cfg_normalize) json["cfg_normalize"] = *s.cfg_normalize;
  json["cfg_until"] = s.true_guidance.until;
  if (s.layers() > 0) json["layers"] = s.layers();
  json["max_sequence_length"] = s.max_sequence_length;
  json["batch_size"] = s.batch_size;
  return json;
}

template <class Number>
OrderedJson number_or_null(const std::optional<Number>& number) {
  return number ? OrderedJson(*number) : OrderedJson();
}

OrderedJson pictures_in_of(const RunReport& r) {
  auto files = OrderedJson::array();
  for (const auto& input : r.inputs)
    files.push_back({{"role", input.role}, {"name", input.name}, {"sha256", input.sha256}});
  return {{"pictures_in", files},
          {"strength", number_or_null(r.facts.settings.strength)},
          {"first_step", r.facts.settings.first_step},
          {"mask_blur", r.facts.settings.mask_blur},
          {"padding_crop", number_or_null(r.facts.settings.padding_crop)}};
}

OrderedJson adapters_of(const std::vector<Adapter>& adapters) {
  auto list = OrderedJson::array();
  for (const auto& [file, scale] : adapters)
    list.push_back({{"file", file.string()}, {"scale", scale}});
  return list;
}

OrderedJson memory_plan_json(const std::optional<MemoryPlan>& plan) {
  if (!plan) return {};
  const auto& o = plan->memory.offload;
  return {{"quantize", choice_name(kQuantizeForms, plan->memory.quantize)},
          {"quantize_text", choice_name(kQuantizeForms, plan->memory.quantize_text)},
          {"offload", choice_name(kOffloadModes, o.transformer)},
          {"offload_text", choice_name(kOffloadModes, o.text)},
          {"offload_vae", choice_name(kOffloadModes, o.vae)},
          {"offload_group", o.blocks},
          {"prefetch", o.prefetch},
          {"resident", o.resident},
          {"uses_files", !o.folder.empty()},
          {"vae_tiling", plan->tiling == VaeTiling::kOn},
          {"drops_recorded_step", plan->memory.recorded_step == RecordedStep::kDropped},
          {"predicted_device_bytes", plan->device_peak},
          {"predicted_host_bytes", plan->host_peak},
          {"predicted_locked_bytes", plan->locked}};
}

}  // namespace

OrderedJson shares_json(const AxisShares& shares) {
  auto json = OrderedJson::object();
  for (const auto& axis : kAxes)
    if (axis.shares && !(shares.*axis.shares).empty()) json[axis.name] = shares.*axis.shares;
  return json;
}

OrderedJson graph_json(const GraphUse& use) {
  OrderedJson json = {{"replays", use.replays}};
  if (!use.why_not.empty()) json["why_not"] = use.why_not;
  if (!use.failure.empty()) json["failure"] = use.failure;
  return json;
}

double seconds_per_step(const RunFacts& facts, const Degrees& degrees) {
  const auto round = pictures_per_round(facts.settings, degrees);
  const auto rounds = (facts.settings.num_pictures() + round - 1) / round;
  return facts.phases.seconds(Phase::kDenoise) / (double(rounds) * facts.settings.steps_taken());
}

std::string dtype_name(at::ScalarType dtype) {
  return std::string(c10::getDtypeNames(dtype).first);
}

OrderedJson traffic_json(const TrafficByAxis& traffic) {
  auto axes = OrderedJson::object();
  for (const auto& [axis, t] : traffic) {
    if (t == Traffic{}) continue;
    auto& json = axes[axis] = OrderedJson::object();
    const auto add = [&](const char* name, std::int64_t count) {
      if (count > 0) json[name] = count;
    };
    add("all_reduces", t.all_reduces);
    add("all_gathers", t.all_gathers);
    add("all_to_alls", t.all_to_alls);
    add("shifts", t.shifts);
    add("broadcasts", t.broadcasts);
    json["bytes"] = t.bytes;
  }
  return axes;
}

OrderedJson peaks_json(const std::vector<RankPeaks>& ranks) {
  auto list = OrderedJson::array();
  for (const auto& rank : ranks) {
    OrderedJson json = {{"device", rank.device},
                        {"resident_bytes", by_phase(rank.resident)},
                        {"resident_shared_by", rank.resident_shared_by}};
    if (rank.device != "cpu") {
      json["device_bytes"] = by_phase(rank.allocated);
      json["device_reserved_bytes"] = by_phase(rank.reserved);
      json["device_shared_by"] = rank.device_shared_by;
    }
    list.push_back(std::move(json));
  }
  return list;
}

std::string report_json(const RunReport& r) {
  const auto degrees = degrees_of(r.options.layout);
  OrderedJson json = {{"files", files_of(r.pictures)}};
  json.update(settings_of(r.facts.settings));
  json.update(pictures_in_of(r));
  json["dtype"] = dtype_name(r.facts.load.dtype);
  json["device"] = list_of_devices(r.options);
  json["threads"] = r.threads;
  json["layout"] = to_string(degrees);
  json["shares"] = shares_json(degrees.shares);
  if (!r.measured_flops.empty()) json["measured_flops"] = r.measured_flops;
  json["graph"] = graph_json(r.facts.graph);
  json["cache"] = words_of(r.options.cache);
  if (!r.facts.full_steps.empty()) json["full_steps"] = r.facts.full_steps;  // by picture, from 0
  json["link"] = link_json(r.facts.load.link);
  json["collectives"] = r.options.layout.collectives == Collectives::kNative ? "native" : "ordered";
  json["step_traffic"] = traffic_json(r.facts.step_traffic);
  json["bytes_read"] = bytes_read_of(r.facts.load.bytes_read);
  json["model"] = r.options.model.string();
  json["lora"] = adapters_of(r.options.adapters);
  json["version"] = version();
  json["warnings"] = r.warnings;
  json["seconds"] = seconds_of(r);
  json["seconds_per_step"] = rounded(seconds_per_step(r.facts, degrees));
  json["peak_memory_bytes"] = peaks_of_first(r.facts.peaks);
  json["fit"] = memory_plan_json(r.memory_plan);
  json["rank_peaks"] = peaks_json(r.facts.peaks.ranks);
  json["peak_memory_is"] = r.facts.peaks.are_exact ? "exact" : "sampled at the ends of phases";
  return indented_json(json);
}

}  // namespace braid
