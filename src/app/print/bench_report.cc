#include "app/print/bench_report.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>

#include "app/flags/memory_words.h"
#include "app/flags/option_names.h"
#include "app/machine/hardware.h"
#include "app/print/bar_chart.h"
#include "app/print/report.h"
#include "app/words/readable.h"
#include "base/error.h"
#include "pipeline/deployment/degrees.h"
#include "pipeline/devices/devices.h"
#include "pipeline/planner/grid.h"

namespace braid {
namespace {

constexpr double kGB = 1e9;

std::string today() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

std::string name_of_model(const DenoiserFlags& denoiser) {
  if (!denoiser.synthetic.empty()) return denoiser.synthetic;
  std::error_code unreachable;
  const auto whole = std::filesystem::weakly_canonical(denoiser.pipeline.model, unreachable);
  return unreachable ? denoiser.pipeline.model.string() : whole.string();
}

std::string layout_of(const Layout& l) { return layout_name(degrees_of(l)); }

// The most a rank held: on its GPU, else in its process.
double peak_of(const RankPeaks& rank) {
  const auto& bytes = rank.device == "cpu" ? rank.resident : rank.allocated;
  return double(*std::max_element(bytes.begin(), bytes.end()));
}

OrderedJson peaks_of(const std::vector<RankPeaks>& ranks) {
  auto each = OrderedJson::array();
  double largest = 0, total = 0;
  for (const auto& rank : ranks) {
    const double gb = peak_of(rank) / kGB;
    each.push_back(gb);
    largest = std::max(largest, gb);
    total += gb / (rank.device == "cpu" ? rank.resident_shared_by : rank.device_shared_by);
  }
  return {{"peak_vram_per_gpu_gb", each},
          {"peak_vram_max_single_gpu_gb", largest},
          {"peak_vram_total_gb", total}};
}

std::string bench_column(const std::string& text) { return right_aligned(text, 11); }

std::string seconds_in(const OrderedJson& result, const char* key) {
  return readable_seconds(result.at(key).get<double>());
}

std::pair<double, double> range_of(const OrderedJson& result) {
  const auto seconds = result.at("steps_s").get<std::vector<double>>();
  const auto [fastest, slowest] = std::minmax_element(seconds.begin(), seconds.end());
  return {*fastest, *slowest};
}

std::string gb_in(const OrderedJson& result, const char* key) {
  return readable_bytes(kGB * result.at(key).get<double>());
}

double bytes_given(const OrderedJson& result) {
  double bytes = 0;
  for (const auto& axis : result.at("step_traffic")) bytes += axis.at("bytes").get<double>();
  return bytes;
}

std::string comparison(const OrderedJson& result) {
  if (!result.contains("against")) return "";
  const auto& against = result["against"];
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%.2f x", against.at("ratio").get<double>());
  return against.at("slower").get<bool>() ? std::string(ratio) + " slower" : ratio;
}

// The sweep's values, else the configuration.
std::string name_of_row(const OrderedJson& result) {
  return result.at(result.contains("setting") ? "setting" : "config").get<std::string>();
}

std::string row(const OrderedJson& r) {
  if (r.contains("failure")) return "  " + r.at("failure").get<std::string>() + "\n";
  const auto [fastest, slowest] = range_of(r);
  return bench_column(seconds_in(r, "step_s")) + bench_column(readable_seconds(fastest)) +
         bench_column(readable_seconds(slowest)) + bench_column(seconds_in(r, "load_s")) +
         bench_column(gb_in(r, "peak_vram_max_single_gpu_gb")) +
         bench_column(readable_bytes(bytes_given(r))) +
         (r.contains("against") ? bench_column(comparison(r)) : "") + "\n";
}

}  // namespace

std::string config_of(const PipelineOptions& o) {
  std::string config = layout_of(o.layout);
  if (o.layout.modulation == SharedModulation::kNo) config += " --tp-modulation replicated";
  if (o.layout.ring_form == RingForm::kGather) config += " --ring-form gather";
  if (o.layout.collectives == Collectives::kNative) config += " --collectives native";
  for (const auto& net : o.controlnets) config += " --controlnet " + net.filename().string();
  const auto flags = flags_of(o.memory);
  return flags.empty() ? config : config + " " + flags;
}

OrderedJson bench_settings(const DenoiserFlags& denoiser) {
  const auto& pipeline = denoiser.pipeline;
  const auto degrees = degrees_of(pipeline.layout);
  return {{"config", config_of(pipeline)},
          {"model", name_of_model(denoiser)},
          {"blocks", denoiser.blocks},
          {"gpus", degrees.product()},
          {"world_size", degrees.product()},
          {"ring_degree", degrees.ring},
          {"layout", layout_of(pipeline.layout)},
          {"quantize", choice_name(kQuantizeForms, pipeline.memory.quantize)},
          {"offload", choice_name(kOffloadModes, pipeline.memory.offload.transformer)},
          {"device", list_of_devices(pipeline)},
          {"machine", name_of_machine(device_names(pipeline).front())}};
}

OrderedJson bench_json(const BenchResult& r, const DenoiserFlags& denoiser) {
  const auto& timed = r.slowest();
  auto json = bench_settings(denoiser);
  json["threads"] = r.threads;
  json["dtype"] = c10::getDtypeNames(r.dtype).first;
  json["size"] = text_of(r.width, "x", r.height);
  json["tokens"] = r.tokens;
  json["steps"] = timed.seconds.size();
  double total = 0;
  for (const double seconds : timed.seconds) total += seconds;
  json["total_s"] = total;
  json["step_s"] = timed.median_seconds();
  json["steps_s"] = timed.seconds;
  if (r.denoisers.size() > 1)
    for (const auto& each : r.denoisers) json["denoisers"][each.folder] = each.median_seconds();
  json["modulations_s"] = r.modulations_seconds;
  json["refining_s"] = r.refining_seconds;
  json["load_s"] = r.load_seconds;
  json["phases"] = {{"load", r.load_seconds}, {"warm_up", r.warm_up_seconds}, {"steps", total}};
  json.update(peaks_of(r.peaks));
  json["rank_peaks"] = peaks_json(r.peaks);
  json["step_traffic"] = traffic_json(r.traffic);
  json["graph"] = graph_json(r.graph);
  json["text_stream"] = r.text_stream == TextStream::kOwn ? "own" : "shared";
  json["date"] = today();
  json["version"] = version();
  return json;
}

OrderedJson failure_json(const std::string& sentence, const DenoiserFlags& denoiser) {
  auto json = bench_settings(denoiser);
  json["failure"] = sentence;
  return json;
}

std::string bench_text(const OrderedJson& r) {
  const auto [fastest, slowest] = range_of(r);
  auto text = text_of(
      one_line(r.at("model").get<std::string>()), ", ", one_line(r.at("config").get<std::string>()),
      ", ", r.at("size").get<std::string>(), ", ", r.at("dtype").get<std::string>(), ", ",
      readable_count(r.at("tokens").get<std::int64_t>()), " tokens, ",
      plural(r.at("threads").get<std::int64_t>(), "thread"), " per rank\n", seconds_in(r, "step_s"),
      " per evaluation (", readable_seconds(fastest), " to ", readable_seconds(slowest), " in ",
      plural(r.at("steps").get<std::int64_t>(), "run"), "), loaded in ", seconds_in(r, "load_s"),
      ", at most ", gb_in(r, "peak_vram_max_single_gpu_gb"), " on a rank, ",
      readable_bytes(bytes_given(r)), " given to other ranks\n");
  if (r.contains("against"))
    text += comparison(r) + (r["against"]["slower"].get<bool>() ? " than the earlier result\n"
                                                                : " of the earlier result\n");
  return text;
}

std::string bench_table(const std::vector<OrderedJson>& results) {
  std::size_t width = 0;
  for (const auto& r : results) width = std::max(width, name_of_row(r).size());
  std::string table = left_aligned("", 2 + width);
  for (const auto* const name : {"step", "fastest", "slowest", "load", "peak", "gives"})
    table += bench_column(name);
  const bool is_compared = std::any_of(results.begin(), results.end(),
                                       [](const OrderedJson& r) { return r.contains("against"); });
  table += is_compared ? bench_column("against") + "\n" : "\n";
  for (const auto& r : results) table += "  " + left_aligned(name_of_row(r), width) + row(r);
  return table;
}

std::string bench_plot(const std::vector<OrderedJson>& results) {
  BarPanel time{"seconds per step, median", {}}, memory{"peak memory of a rank", {}};
  for (const auto& r : results) {
    if (r.contains("failure")) continue;
    const auto name = name_of_row(r);
    time.bars.push_back({name, r.at("step_s").get<double>(), seconds_in(r, "step_s")});
    memory.bars.push_back({name, r.at("peak_vram_max_single_gpu_gb").get<double>(),
                           gb_in(r, "peak_vram_max_single_gpu_gb")});
  }
  return bar_chart({time, memory});
}

}  // namespace braid
