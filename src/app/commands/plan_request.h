// The request of `braid plan`.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "braid/braid.h"
#include "pipeline/planner/planner.h"

namespace braid {

struct PlanFlags {
  PipelineOptions options;  // the model: a path, a known name, or empty for the bundled one
  std::optional<int> width = {}, height = {}, steps = {}, text_tokens = {};
  int batch_size = 1, num_pictures = 1;
  double true_cfg = 1;
  std::optional<double> guidance = {};                 // the model's own scale
  std::filesystem::path init = {};                     // empty: none
  std::vector<std::filesystem::path> references = {};  // only their sizes count
  Layout sharing = {};                                 // what is shared, without degrees
  std::string devices = "cpu", memory = {}, link = {}, network = "ethernet";
  int devices_per_host = 1024;
  bool all = false, json = false;
};

// Throw InputError naming the flag.
PlanJob job_of(const PlanFlags& flags);
Machine machine_of(const PlanFlags& flags);

// Other ways to keep the weights, with which a layout fits where none does otherwise: those that
// change least. For several devices their tensor parallel ranks share the text encoders.
struct PlanRemedy {
  PlanJob job;
  PlannedLayout layout;  // the fastest
};
std::vector<PlanRemedy> find_remedies(const PlanJob& job, const Machine& machine);

}  // namespace braid
