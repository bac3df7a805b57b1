#include "app/commands/commands.h"

#include "app/commands/bench_against.h"
#include "app/commands/deployments.h"
#include "app/files/input_pictures.h"
#include "app/files/output_files.h"
#include "app/machine/launched.h"
#include "app/print/bench_report.h"
#include "app/print/failure.h"
#include "app/print/standard_output.h"
#include "base/error.h"
#include "base/file.h"

namespace braid {
namespace {

// A configuration with what the command line leaves open filled in for this machine.
struct Settled {
  Deployment deployment;
  DenoiserFlags denoiser;
  BenchOptions options;
};

Settled settled(const BenchConfiguration& configuration) {
  Settled settled{.deployment = deployed(configuration),
                  .denoiser = configuration.denoiser,
                  .options = configuration.options};
  settled.denoiser.pipeline = settled.deployment.options;
  settled.options.probe.pictures = read_input_pictures(configuration.pictures).pictures;
  return settled;
}

OrderedJson named(OrderedJson result, const BenchConfiguration& configuration) {
  if (!configuration.setting.empty()) result["setting"] = configuration.setting;
  return result;
}

OrderedJson measured(const Settled& all) {
  return bench_json(bench(all.deployment, all.options), all.denoiser);
}

// Reports the exception that is being handled.
OrderedJson failed(const BenchConfiguration& configuration, const DenoiserFlags& denoiser) {
  return named(failure_json(current_failure("bench").sentence, denoiser), configuration);
}

// In a sweep, a configuration that is impossible or runs out of memory is a result, too.
OrderedJson run_one(const BenchConfiguration& configuration) {
  if (configuration.setting.empty()) return measured(settled(configuration));
  std::optional<Settled> all;
  try {
    all = settled(configuration);
  } catch (const UnsuitableLayout&) {
    return failed(configuration, configuration.denoiser);
  }
  try {
    return named(measured(*all), configuration);
  } catch (...) {
    return failed(configuration, all->denoiser);
  }
}

// The results to compare with. Throws InputError before any time is spent on measuring.
std::vector<OrderedJson> earlier_results(const BenchFlags& flags) {
  if (flags.against.empty()) return {};
  auto before = read_results(flags.against);
  std::error_code missing;
  require(flags.plot.empty() || !std::filesystem::equivalent(flags.plot, flags.against, missing),
          "--plot would overwrite ", flags.against.string(), ", which --against reads");
  for (const auto& configuration : flags.configurations) {
    try {
      require_comparable(bench_settings(settled(configuration).denoiser), before);
    } catch (const UnsuitableLayout&) {
      if (configuration.setting.empty()) throw;  // in a sweep it is a result
    }
  }
  return before;
}

std::string text_of_results(const std::vector<OrderedJson>& results, const BenchFlags& flags) {
  if (flags.json) return indented_json(flags.is_sweep ? OrderedJson(results) : results.front());
  return flags.is_sweep ? bench_table(results) : bench_text(results.front());
}

int count_failures(const std::vector<OrderedJson>& results) {
  int failures = 0;
  for (const auto& result : results) failures += result.contains("failure") ? 1 : 0;
  return failures;
}

void require_one_launch(const BenchFlags& flags) {
  if (flags.configurations.size() == 1 || !is_launched()) return;
  throw InputError(
      "--sweep starts new ranks for each configuration, but a launcher has started these: launch "
      "braid bench once per configuration");
}

}  // namespace

int bench_transformer(const BenchFlags& flags) {
  require_one_launch(flags);
  warn_of(flags.unused);
  std::vector<OrderedJson> before, results;
  if (is_first_rank()) before = earlier_results(flags);
  if (!flags.plot.empty() && is_first_rank()) require_writable("--plot", flags.plot);
  for (const auto& configuration : flags.configurations) results.push_back(run_one(configuration));
  if (!is_first_rank()) return kSuccess;
  Comparison against;
  if (!before.empty()) against = compare_results(results, before, flags.tolerance);
  print(text_of_results(results, flags));
  if (!flags.plot.empty()) write_file(flags.plot, bench_plot(results));
  const int failures = count_failures(results);
  check(failures == 0, failures, " of ", results.size(), " configurations failed");
  require(against.missing.empty(), against.missing);
  check(against.slower == 0, against.slower, " of ", results.size(), " results are slower than in ",
        flags.against.string());
  return kSuccess;
}

}  // namespace braid
