// What a run is: files, family, layout, devices, dtype, memory. deploy() settles it once; every
// command of the program and the library's Pipeline start from the result.
#pragma once

#include <optional>

#include "braid/braid.h"
#include "pipeline/devices/host.h"
#include "pipeline/families/family.h"
#include "pipeline/files/model_files.h"
#include "pipeline/memory/stated.h"
#include "pipeline/memory/temporary_pages.h"
#include "pipeline/planner/memory_plan.h"
#include "pipeline/request/settings.h"

namespace braid {

struct Preset;

// What is asked for. Nothing here names a machine: that is the Host.
struct DeployOptions {
  PipelineOptions pipeline = {};
  // Unset: the memory settings that differ from their defaults.
  std::optional<StatedMemory> stated = {};
  // What the deployment is to run: it is checked, and layout and memory are planned for it. Unset:
  // any request; the layout then suits what `pipeline.layout` asks for.
  std::optional<Request> request = {};
  // Where any request may come, this is the one to plan for. Unset: a picture of the model's
  // defaults.
  std::function<Request(const Family&)> typical = {};
  // A model known by name (list_of_named_models()): random weights of its shapes, instead of files.
  std::string synthetic = {};
  std::vector<int> blocks = {};  // for it, one count per kind; 0: all
  // What the ranks do: processes of a launch compare it before anything else.
  std::string command = {};
  // Whether the parts beside a single file's transformer must have weights, too.
  WeightsNeeded needed = WeightsNeeded::kAll;
  // Both are called on the first rank of a launch. `say` hears which files were chosen where
  // several would do. `warn` hears what was asked for and is not followed: components of a model
  // that has its own, layers that the model lacks, a form that stored codes do not take.
  Warn say = {};
  Warn warn = {};
};

struct Deployment {
  // What was asked for, with everything settled: all files named, degrees and shares chosen, memory
  // without a preset or budget, this process's device. Deploying them again changes nothing.
  PipelineOptions options;
  std::shared_ptr<const ModelFiles> files;  // null: a synthetic model
  std::shared_ptr<const Family> family;     // as the adapters widen it

  RankPlaces places;                // degrees, and devices by name
  std::vector<at::Device> devices;  // by rank
  at::ScalarType dtype;             // to compute in, on the first rank's device

  std::string command = {};  // DeployOptions::command
  StatedMemory stated;
  const Preset* preset = nullptr;                 // that was applied
  Budget budget = {};                             // that memory keeps to, if any
  bool is_budget_implied = false;                 // by the GPU
  std::optional<MemoryPlan> memory_plan = {};     // for the budget
  std::optional<PlannedLayout> layout_plan = {};  // with Fit::kAuto
  std::vector<double> measured_flops = {};        // per second, by rank; with shares_fit kAuto
  // Where weights lie that only files make fit; removed with the last copy of the deployment.
  std::shared_ptr<const TemporaryPages> pages = {};
  // What a launch's ranks settle again once they have told each other their measured speeds; until
  // then their shares are alike. Null: nothing.
  struct UntilMet {
    DeployOptions asked;
    Host host;
  };
  std::shared_ptr<const UntilMet> until_met = {};

  const Degrees& degrees() const { return places.grid; }
  bool is_on_host() const { return devices.front().is_cpu(); }
  // How large the weights of all parts are in their files. Throws InputError if one cannot be
  // opened.
  std::int64_t stored_bytes() const;
  // The request, decoded in tiles if the memory plan says so and the request leaves it open.
  Request tiled(Request request) const;
};

// Degrees or shares by which no request, or not this one, could be drawn.
class UnsuitableLayout : public InputError {
 public:
  using InputError::InputError;
};

// The one function that settles a run, in this order: that the devices exist; files and family; the
// request's check; layout and, if asked for, shares by measured speed; devices; dtype; memory by
// preset or budget. Reads configs and headers of files, no weights. Throws InputError,
// UnsuitableLayout among these. A launch's ranks refuse an unusable model together, where their
// degrees are given: the first one speaks for them. Shares by their measured speeds are settled
// when they have met: make_world() does it.
Deployment deploy(const DeployOptions& asked, const Host& host = this_host());
Deployment deploy(const PipelineOptions& options, const Warn& say_and_warn = {});

// Settles what waited for the speeds of a launch's ranks: shares, and memory for them.
void settle_shares_by_speed(Deployment& deployment, std::vector<double> flops);

// What the planner is asked about such a run. Surveys the model's tensors.
PlanJob job_of(const Deployment& deployment, const Request& request);

// The request with every default filled in, those of its own adapters included, and every value
// checked. Throws InputError, also where it has fewer branches of guidance than the layout shares
// out.
Settings settle(const Deployment& deployment, const Request& request, const Warn& warn);

// plan_memory() for `deployment.options.memory` and its budget.
MemoryPlan plan_memory(const Deployment& deployment, const Request& request);

// Whether weights in files would make it fit.
bool files_would_help(const DoesNotFit& refusal);

}  // namespace braid
