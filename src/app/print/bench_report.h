// What `braid bench` prints of its results.
#pragma once

#include <string>
#include <vector>

#include "app/print/readable_json.h"
#include "pipeline/proofs/bench.h"

namespace braid {

// "tp 2 --quantize int8": the layout, and the flags that change how it computes or where weights
// are.
std::string config_of(const PipelineOptions& options);

// What a result belongs to, as far as it is known before anything is loaded.
OrderedJson bench_settings(const BenchOptions& options);

// The keys of the harness that published figures come from (docs/performance.md) and what that does
// not say. Times are seconds; memory is a GPU's, with ranks on a CPU what of their process is
// resident.
OrderedJson bench_json(const BenchResult& result, const BenchOptions& options);
// In the place of a result.
OrderedJson failure_json(const std::string& sentence, const BenchOptions& options);

// One result in sentences; several in a table. They are as above, compared or not; a row is named
// by "setting", where there is such a key.
std::string bench_text(const OrderedJson& result);
std::string bench_table(const std::vector<OrderedJson>& results);

// Bars of the seconds of a step and of the most memory of a rank, a pair for each result. SVG.
std::string bench_plot(const std::vector<OrderedJson>& results);

}  // namespace braid
