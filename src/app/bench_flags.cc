#include "app/bench_flags.h"

#include "app/flag_values.h"
#include "app/layout_flags.h"
#include "app/memory_flags.h"
#include "app/pipeline_flags.h"

namespace braid {
namespace {

constexpr int kMaxRuns = 10'000, kMaxTokens = 512;

}  // namespace

const char* const kBenchExamples =
    R"(Times are of one evaluation, a step without guidance, from when all ranks begin until all
are done; the result is checked to be a number before it is timed.

Examples:
  braid bench
  braid bench --synthetic flux1-dev --double 2 --single 4 --size 512x512
  braid bench --synthetic flux1-dev --double 2 --single 4 --size 512x512 --tp 2 --json)";

void add_bench_flags(FlagReader& read, BenchFlags& f) {
  auto& probe = f.options.probe;
  add_layout_flags(read, probe.pipeline.layout);
  add_model_flags(read, probe.pipeline);
  add_synthetic_flags(read, probe.synthetic, probe.num_double, probe.num_single);
  add_machine_flags(read, probe.pipeline);
  add_memory_flags(read, probe.pipeline.memory);
  read.text("--size", "WxH", "Bench", "Width and height in pixels. Default: the model's",
            [&](const std::string& flag, const std::string& text) {
              const auto size = picture_size(flag, text);
              probe.width = size.width;
              probe.height = size.height;
            });
  read.text("--max-sequence-length", "N", "Bench", "Text tokens, 1 to 512. Default: the model's",
            [&](const std::string& flag, const std::string& text) {
              probe.max_sequence_length = int(whole_number(flag, text, 1, kMaxTokens));
            });
  read.text("--runs", "N", "Bench", "Timed evaluations. Default: 5",
            [&](const std::string& flag, const std::string& text) {
              f.options.runs = int(whole_number(flag, text, 1, kMaxRuns));
            });
  read.text("--warm-up", "N", "Bench", "Evaluations before these. Default: 1",
            [&](const std::string& flag, const std::string& text) {
              f.options.warm_ups = int(whole_number(flag, text, 0, kMaxRuns));
            });
  read.flag("--json", "Talk", "Print one JSON object", f.json);
}

}  // namespace braid
