// How `braid bench` prints its results.
#pragma once

#include <string>
#include <vector>

#include "app/flags/flags.h"
#include "app/print/readable_json.h"
#include "pipeline/proofs/bench.h"

namespace braid {

// "tp 2 --quantize int8": the layout, and the flags that change how it computes or where weights
// live.
std::string config_of(const PipelineOptions& options);

// The keys that identify a result, as far as they are known before anything is loaded.
OrderedJson bench_settings(const DenoiserFlags& denoiser);

// The keys of the harness behind published figures (docs/performance.md), and some of our own.
// Times are seconds; memory is a GPU's or, for ranks on a CPU, their process's resident memory.
OrderedJson bench_json(const BenchResult& result, const DenoiserFlags& denoiser);
// Takes the place of a result.
OrderedJson failure_json(const std::string& sentence, const DenoiserFlags& denoiser);

// One result in sentences; several in a table, compared or not. Rows are named by "setting", if
// that key exists.
std::string bench_text(const OrderedJson& result);
std::string bench_table(const std::vector<OrderedJson>& results);

// SVG bars of the seconds per step and the peak memory of a rank, one pair per result.
std::string bench_plot(const std::vector<OrderedJson>& results);

}  // namespace braid
