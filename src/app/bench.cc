#include "app/bench.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/bundled_model.h"
#include "app/failure.h"
#include "app/launched.h"
#include "app/readable.h"
#include "app/readable_json.h"
#include "app/report.h"
#include "app/standard_output.h"
#include "base/error.h"
#include "pipeline/engine.h"

namespace braid {
namespace {

std::string name_of(const ProbeOptions& probe) {
  return probe.synthetic.empty() ? probe.pipeline.model.string() : probe.synthetic;
}

// The keys of the harness that published figures come from, and what it does not say.
OrderedJson json_of(const BenchResult& r, const BenchOptions& o) {
  return {{"config", to_string(degrees_of(o.probe.pipeline.layout))},
          {"model", name_of(o.probe)},
          {"gpus", r.num_ranks},
          {"threads", r.threads},
          {"dtype", c10::getDtypeNames(r.dtype).first},
          {"tokens", r.tokens},
          {"load_s", r.load_seconds},
          {"step_s", r.median_seconds()},
          {"steps_s", r.seconds},
          {"step_traffic", traffic_json(r.traffic)},
          {"rank_peaks", peaks_json(r.peaks)}};
}

std::string text_of_result(const BenchResult& r, const BenchOptions& o) {
  const auto [fastest, slowest] = std::minmax_element(r.seconds.begin(), r.seconds.end());
  std::int64_t bytes = 0;
  for (const auto& axis : r.traffic) bytes += axis.traffic.bytes;
  return text_of(name_of(o.probe), ", ", to_string(degrees_of(o.probe.pipeline.layout)), ", ",
                 c10::getDtypeNames(r.dtype).first, ", ", readable_count(r.tokens), " tokens, ",
                 plural(r.threads, "thread"), " a rank\n", readable_seconds(r.median_seconds()),
                 " an evaluation (", readable_seconds(*fastest), " to ", readable_seconds(*slowest),
                 " in ", plural(std::int64_t(r.seconds.size()), "run"), "), loaded in ",
                 readable_seconds(r.load_seconds), ", ", readable_bytes(double(bytes)),
                 " given to other ranks\n");
}

}  // namespace

int bench_transformer(const BenchFlags& flags) {
  auto options = flags.options;
  auto& pipeline = options.probe.pipeline;
  if (pipeline.model.empty() && options.probe.synthetic.empty()) pipeline.model = bundled_model();
  pipeline.layout.ranks = Ranks::kProcesses;
  pipeline.device = device_of_rank(pipeline.device);
  const auto result = bench(options);
  if (!is_first_rank()) return kSuccess;
  print(flags.json ? json_text(json_of(result, options)) : text_of_result(result, options));
  return kSuccess;
}

}  // namespace braid
