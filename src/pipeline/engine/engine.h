// A loaded model that answers requests; the public Pipeline wraps it and the program uses it.
#pragma once

#include "braid/braid.h"
#include "comm/world.h"
#include "pipeline/deployment/deployment.h"
#include "pipeline/devices/cached_memory.h"
#include "pipeline/devices/devices.h"
#include "pipeline/engine/run_facts.h"
#include "pipeline/engine/turns.h"
#include "pipeline/loaded/model.h"
#include "pipeline/memory/peaks.h"
#include "weights/adapters/adapter_shelf.h"

namespace braid {

// Whether to measure peaks of memory: measuring resets the process-wide peaks.
enum class Measure { kNothing, kPeaks };

class Engine {
 public:
  // Loads the deployed model. Throws InputError for a synthetic one.
  Engine(Deployment deployment, const Hooks& hooks, Measure measure = Measure::kNothing);
  Engine(const PipelineOptions& options, const Hooks& hooks, Measure measure = Measure::kNothing);

  // Does what Pipeline::generate does, and returns the facts of the run.
  Generated generate(const Request& request, const Hooks& hooks,
                     const RunOptions& options = {}) const;

  // Takes part in a generate() of the other processes and ends it with `failure`, for a rank that
  // has no request to call it with. Throws as it does.
  [[noreturn]] void fail_generate(const std::exception_ptr& failure) const;
  // Why no further call can succeed, for people; nothing while the ranks work.
  std::optional<std::string> loss() const { return world_->loss(); }

  // Collective where ranks are processes: all ranks get the first rank's text. The others wait for
  // it without a deadline.
  std::string share(const std::string& text) const;

  // The request as it will run: defaults filled in, sizes rounded.
  Settings settle(const Request& request, const Hooks& hooks) const;
  // The settled request in the form of a Request, latents checked; and what may be asked for.
  Request complete(const Request& request, const Hooks& hooks) const;
  ModelInfo info() const;
  const Deployment& deployment() const { return deployment_; }
  const LoadFacts& loaded() const { return loaded_; }
  bool is_here() const { return turns_.is_here(); }  // false in a child of fork()

 private:
  struct Prepared;

  Prepared prepared(const Request& request) const;
  void load_rank(const Group& world, const Hooks& hooks);
  // Told with the first request, which says what a step has to do.
  std::optional<std::string> link_warning(const Request& request) const;
  const Model& model() const;  // any rank that lives in this process

  mutable AdapterShelf shelf_;
  Deployment deployment_;
  const GivesBackMemory gives_back_{deployment_.devices};
  std::unique_ptr<World> world_;
  int threads_;                                 // per rank
  std::vector<std::unique_ptr<Model>> models_;  // by rank; those in this process
  LoadFacts loaded_;
  std::optional<LinkSpec> link_speed_;  // the first rank's process has it, if it was measured
  std::unique_ptr<PeakMeter> meter_;
  const Turns turns_{"pipeline"};
  mutable bool has_judged_link_ = false;  // in a turn
};

}  // namespace braid
