// What --json prints.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/flags/flags.h"
#include "app/print/readable_json.h"
#include "image/input_file.h"
#include "pipeline/engine/run_facts.h"
#include "pipeline/planner/memory_plan.h"

namespace braid {

struct SavedPicture {
  std::filesystem::path path;
  std::string prompt;
  std::uint64_t seed;
  std::string original_prompt = {};  // if an enhancer rewrote it
};

struct RunReport {
  const PipelineOptions& options;
  const RunFacts& facts;
  PhaseLog::Clock::time_point program_began;
  std::vector<SavedPicture> pictures = {};
  std::vector<InputFile> inputs = {};
  std::vector<std::string> warnings = {};
  int threads = 0;
  std::optional<MemoryPlan> memory_plan = {};  // a budget's choice
  std::vector<double> measured_flops = {};     // per second, by rank, if shares are by them
};

// Seconds per step, over all rounds; 0 before the first.
double seconds_per_step(const RunFacts& facts, const Degrees& degrees);

std::string dtype_name(at::ScalarType dtype);  // "bfloat16"

// Keys are axes, values counts and bytes that a rank sends; axes without traffic are left out.
OrderedJson traffic_json(const TrafficByAxis& traffic);
OrderedJson graph_json(const GraphUse& use);
// Lists by axis, of those that have shares.
OrderedJson shares_json(const AxisShares& shares);

// One object per rank: its process's resident memory and its GPU's allocations, in each phase.
OrderedJson peaks_json(const std::vector<RankPeaks>& ranks);

// One JSON object and a newline. Times are seconds, sizes bytes or pixels.
std::string report_json(const RunReport& report);

}  // namespace braid
