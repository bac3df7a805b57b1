// What --json prints.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/files/input_pictures.h"
#include "app/flags/flags.h"
#include "app/print/phase_log.h"
#include "app/print/readable_json.h"
#include "pipeline/engine.h"
#include "pipeline/planner/memory_plan.h"

namespace braid {

struct SavedPicture {
  std::filesystem::path path;
  std::string prompt;
  std::uint64_t seed;
};

struct MeasuredPeaks {
  std::int64_t start_bytes = 0;  // resident, before the first phase
  bool are_exact = true;
  std::vector<RankPeaks> ranks = {};
};

struct RunReport {
  const PipelineOptions& options;
  const Settings& settings;
  const PhaseLog& phases;
  std::vector<SavedPicture> pictures = {};
  std::vector<InputFile> inputs = {};
  std::vector<std::string> warnings = {};
  std::filesystem::path model = {};
  std::string dtype = {};
  int threads = 0;
  GraphUse graph = {};
  std::vector<std::vector<int>> full_steps = {};  // by picture, with a cache
  LinkUse link = {};
  TrafficByAxis step = {};                 // sent by the first rank to the others in the first step
  std::vector<BytesRead> bytes_read = {};  // by rank
  MeasuredPeaks peaks = {};
  std::optional<MemoryPlan> fit = {};  // a budget's choice
};

// Seconds per step, over all rounds; 0 before the first.
double seconds_per_step(const Settings& settings, const Degrees& degrees, const PhaseLog& phases);

// By axis, counts and bytes a rank sends; axes without traffic are left out.
OrderedJson traffic_json(const TrafficByAxis& traffic);
OrderedJson graph_json(const GraphUse& use);

// One object per rank: its process's resident memory and its GPU's allocations, in each phase.
OrderedJson peaks_json(const std::vector<RankPeaks>& ranks);

// One JSON object and a newline. Times are seconds, sizes bytes or pixels.
std::string report_json(const RunReport& report);

}  // namespace braid
