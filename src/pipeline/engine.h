// A loaded model that answers requests. What the public Pipeline wraps and the program uses.
#pragma once

#include <map>
#include <mutex>

#include "braid/braid.h"
#include "comm/axis_traffic.h"
#include "comm/world.h"
#include "pipeline/devices.h"
#include "pipeline/memory/peaks.h"
#include "pipeline/model.h"
#include "pipeline/settings.h"
#include "weights/adapters/adapter_shelf.h"

namespace braid {

// Tensors of a run by name, float32, pictures stacked along the batch: what --dump writes.
using Recording = std::map<std::string, Tensor>;

// Whether peaks of memory are measured: that takes the process's own from whoever else reads it.
enum class Measure { kNothing, kPeaks };

class Engine {
 public:
  Engine(const PipelineOptions& options, const Hooks& hooks, Measure measure = Measure::kNothing);

  // As Pipeline::generate. With `recording` it also keeps prompt_embeds, pooled_prompt_embeds,
  // latents_initial, sigmas, timesteps, velocity_first and latents_final; `step` becomes what the
  // first rank gave the others in the first step.
  std::vector<Picture> generate(const Request& request, const Hooks& hooks,
                                Recording* recording = nullptr,
                                TrafficByAxis* step = nullptr) const;

  // Collective where ranks are processes: the first rank's text, on all of them. The others wait
  // for it without a deadline.
  std::string share(const std::string& text) const;

  // The request as it will run: defaults filled in, sizes rounded.
  Settings settle(const Request& request, const Hooks& hooks) const;
  // The same as a request, checked with its latents; and what may be asked for.
  Request complete(const Request& request, const Hooks& hooks) const;
  ModelInfo info() const;
  at::ScalarType dtype() const { return model().dtype(); }
  const GraphUse& graph_use() const { return model().graph_use(); }
  // Of the last request, by picture: the steps that were evaluated in full, from 0 on. Empty
  // without a cache.
  const std::vector<std::vector<int>>& full_steps() const { return full_steps_; }
  LinkUse link() const { return world_->link(); }
  // Of the model's files while it was loaded, by rank; on the process of the first rank.
  const std::vector<BytesRead>& bytes_read() const { return bytes_read_; }
  // Of all phases so far, by rank; on the process of the first rank, and only if they are
  // measured.
  const std::vector<RankPeaks>& peaks() const { return rank_peaks_; }
  const PeakMeter* meter() const { return meter_.get(); }

 private:
  void gather_peaks(const Group& world) const;
  const Model& model() const;  // of any rank that is here

  std::unique_ptr<World> world_;
  int threads_;                      // a rank
  std::vector<at::Device> devices_;  // by rank
  mutable AdapterShelf shelf_;
  std::vector<AppliedAdapter> adapters_;        // of requests that bring none
  std::vector<std::unique_ptr<Model>> models_;  // by rank; those that are here
  std::vector<BytesRead> bytes_read_;
  std::unique_ptr<PeakMeter> meter_;
  mutable std::vector<RankPeaks> rank_peaks_;
  mutable std::vector<std::vector<int>> full_steps_;
  mutable std::mutex one_request_at_a_time_;
};

// What may be asked for of a model, from its config files alone.
ModelInfo info_of(const Description& description);

// What a layout asks for, checked.
std::unique_ptr<World> make_world(const PipelineOptions& options);
Degrees degrees_of(const Layout& layout);
WorldOptions world_of(const Layout& layout);

}  // namespace braid
