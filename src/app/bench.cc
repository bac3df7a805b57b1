#include "app/bench.h"

#include "app/bench_against.h"
#include "app/bench_report.h"
#include "app/bundled_model.h"
#include "app/failure.h"
#include "app/launched.h"
#include "app/output_files.h"
#include "app/preset_flags.h"
#include "app/standard_output.h"
#include "base/error.h"
#include "base/file.h"

namespace braid {
namespace {

// With what the command line leaves to this machine.
BenchOptions settled(const BenchConfiguration& configuration) {
  auto options = configuration.options;
  auto& pipeline = options.probe.pipeline;
  if (pipeline.model.empty() && options.probe.synthetic.empty()) pipeline.model = bundled_model();
  pipeline.layout.ranks = Ranks::kProcesses;
  pipeline.device = device_of_rank(pipeline.device);
  if (!configuration.preset.name.empty())
    pipeline.memory = choose_memory(configuration.preset, pipeline).memory;
  return options;
}

// Of several configurations one that is not possible, or for which there is not enough memory, is
// a result too.
OrderedJson run_one(const BenchConfiguration& configuration, bool is_one_of_several) {
  const auto options = settled(configuration);
  if (!is_one_of_several) return bench_json(bench(options), options);
  try {
    return bench_json(bench(options), options);
  } catch (...) {
    return failure_json(current_failure().sentence, options);
  }
}

std::string text_of_results(const std::vector<OrderedJson>& results, const BenchFlags& flags) {
  const bool is_one = flags.configurations.size() == 1;
  if (flags.json) return json_text(is_one ? results.front() : OrderedJson(results));
  return is_one ? bench_text(results.front()) : bench_table(results);
}

int count_failures(const std::vector<OrderedJson>& results) {
  int failures = 0;
  for (const auto& result : results) failures += result.contains("failure") ? 1 : 0;
  return failures;
}

}  // namespace

int bench_transformer(const BenchFlags& flags) {
  std::vector<OrderedJson> before, results;
  if (!flags.against.empty() && is_first_rank()) before = read_results(flags.against);
  if (!flags.plot.empty() && is_first_rank()) require_writable("--plot", flags.plot);
  for (const auto& configuration : flags.configurations)
    results.push_back(run_one(configuration, flags.configurations.size() > 1));
  if (!is_first_rank()) return kSuccess;
  int slower = 0;
  if (!before.empty()) slower = compare_results(results, before, flags.tolerance);
  print(text_of_results(results, flags));
  if (!flags.plot.empty()) write_file(flags.plot, bench_plot(results));
  const int failures = count_failures(results);
  check(failures == 0, failures, " of ", results.size(), " configurations failed");
  check(slower == 0, slower, " of ", results.size(), " results are slower than in ",
        flags.against.string());
  return kSuccess;
}

}  // namespace braid
