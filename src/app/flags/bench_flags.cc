#include "app/flags/bench_flags.h"

#include <algorithm>

#include "app/flags/flag_groups.h"
#include "app/flags/flag_values.h"
#include "app/flags/unused_flags.h"
#include "base/ascii.h"

namespace braid {
namespace {

constexpr int kMaxRuns = 10'000;

void add_result_flags(FlagReader& read, BenchLine& line, BenchFlags& f) {
  read.texts("--sweep", "FLAG=A,B", "Bench",
             "Try each value of a flag in turn, as in tp=1,2 or\n"
             "offload=none,block; may be given several times",
             [&](const std::string& flag, const std::string& text) {
               line.sweeps.push_back(read_sweep(flag, text));
             });
  read.path("--against", "FILE", "Bench",
            "Compare with this output of --json; exit code 1 if a step is\n"
            "slower by more than --tolerance and the spread of the runs",
            f.against);
  read.text("--tolerance", "PERCENT", "Bench",
            "Slowdown that --against allows, 0 to 1000. Default: 10",
            [&](const std::string& flag, const std::string& text) {
              f.tolerance = finite_number(flag, text) / 100;
              require(f.tolerance >= 0 && f.tolerance <= 10, flag,
                      " should be 0 to 1000 percent, it is ", in_quotes(text));
            });
  read.text("--plot", "FILE", "Bench", "Write a bar chart of times and memory, as SVG",
            [&](const std::string& flag, const std::string& text) {
              f.plot = text;
              require(ascii_lower_case(f.plot.extension().string()) == ".svg", flag,
                      " should be a file whose name ends in .svg, it is ", in_quotes(text));
            });
  read.flag("--json", "Output", "Print one JSON object; with --sweep, a list", f.json);
}

void require_sweepable(const std::string& flag) {
  for (const auto* const once : {"--against", "--tolerance", "--plot", "--json", "--sweep"})
    require(flag != once, "--sweep cannot vary ", once, ": it is about all results together");
  for (const auto* const list : {"--devices", "--quantize-skip"})
    require(flag != list, "--sweep cannot vary ", list, ": its own value contains commas");
}

// Checks flags that need others. The preset's values are not known yet.
void check_together(const BenchFlags& f, const std::set<std::string>& given) {
  const auto needs = [&](const char* flag, const char* other, const char* why) {
    require(!given.contains(flag) || given.contains(other), flag, " ", why, ": give ", other,
            ", too");
  };
  needs("--tolerance", "--against", "says what a comparison lets pass");
  check_synthetic_flags(given);
  needs("--disk-reads", "--offload-dir", "says how files of weights are read");
  const bool is_used = std::any_of(f.configurations.begin(), f.configurations.end(),
                                   [](const BenchConfiguration& c) {
                                     const auto& memory = c.denoiser.pipeline.memory;
                                     return !memory.preset.empty() || offloads(memory.offload);
                                   });
  require(is_used || !given.contains("--offload-dir"),
          "--offload-dir is for weights that are offloaded: give --offload, too");
}

// What no configuration uses.
std::vector<std::string> unused_flags(const std::vector<BenchConfiguration>& configurations) {
  const auto unused_by = [](const BenchConfiguration& c) {
    const auto& options = c.denoiser.pipeline;
    auto all = unused_memory_flags(options, c.denoiser.stated, Fit::kAsAsked);
    for (auto& sentence : unused_layout_flags(options)) all.push_back(std::move(sentence));
    for (auto& sentence : unused_request_flags(options, c.pictures))
      all.push_back(std::move(sentence));
    return all;
  };
  auto unused = unused_by(configurations.front());
  for (const auto& configuration : configurations) {
    const auto others = unused_by(configuration);
    std::erase_if(unused, [&](const std::string& sentence) {
      return std::ranges::find(others, sentence) == others.end();
    });
  }
  return unused;
}

}  // namespace

const char* const kBenchExamples =
    R"(Times one evaluation, a step without guidance, from when all ranks begin until all are done,
after a check that its result is finite. With --sweep, a table shows each combination.
--against compares with what --json printed before, on the same machine.

Examples:
  braid bench
  braid bench --synthetic flux1-dev --double 2 --single 4 --size 512x512
  braid bench --synthetic flux1-dev --double 2 --single 4 --size 512x512 --tp 2 --json
  braid bench --sweep offload=none,block --sweep quantize=none,int8 --plot bench.svg
  braid bench --against earlier.json --tolerance 5)";

void add_bench_flags(FlagReader& read, BenchLine& line, BenchFlags& f) {
  auto& options = line.configuration.options;
  auto& probe = options.probe;
  auto& denoiser = line.configuration.denoiser;
  add_layout_flags(read, denoiser.pipeline.layout);
  add_model_flags(read, denoiser.pipeline);
  add_controlnet_flag(read, denoiser.pipeline.controlnets);
  add_adapter_flags(read, denoiser.pipeline);
  add_synthetic_flags(read, denoiser.synthetic, denoiser.blocks);
  add_machine_flags(read, denoiser.pipeline);
  add_graph_flag(read, denoiser.pipeline);
  add_text_stream_flag(read, denoiser.pipeline);
  add_preset_flag(read, denoiser.pipeline.memory, "none");
  add_memory_flags(read, denoiser.pipeline.memory, denoiser.stated, Bits::kGiven);
  read.text("--size", "WxH", "Bench", "Width and height in pixels. Default: the model's",
            picture_size_into(probe.width, probe.height));
  read.text("--max-sequence-length", "N", "Bench", planned_text_tokens_help(),
            into(probe.max_sequence_length, whole_from(1, kLongestTextTokens)));
  add_layers_flag(read, probe.layers, "Bench",
                  "Layers that a picture is taken apart into, by Qwen-Image-Layered.\n"
                  "Default: 4");
  add_reference_flags(read, line.configuration.pictures, "Bench");
  read.text("--runs", "N", "Bench", "Timed evaluations. Default: 5",
            into(options.runs, whole_from(1, kMaxRuns)));
  read.text("--warm-up", "N", "Bench", "Untimed evaluations before these. Default: 1",
            into(options.warm_ups, whole_from(0, kMaxRuns)));
  add_result_flags(read, line, f);
}

void finish_bench_flags(FlagReader& read, BenchLine& line, BenchFlags& f) {
  read.finish();
  f.is_sweep = !line.sweeps.empty();
  for (auto& sweep : line.sweeps) sweep.flag = read.usual_name(sweep.flag);
  auto given = read.given();
  for (const auto& sweep : line.sweeps) given.insert(sweep.flag);
  for (const auto& sweep : line.sweeps) require_sweepable(sweep.flag);
  for (const auto& setting : settings_of(std::exchange(line.sweeps, {}))) {
    line.configuration = {.setting = to_string(setting)};
    read.finish();
    for (const auto& [flag, value] : setting)
      read.read_also(flag, "--sweep " + flag.substr(2), value);
    f.configurations.push_back(line.configuration);
  }
  check_together(f, given);
  f.unused = unused_flags(f.configurations);
}

}  // namespace braid
