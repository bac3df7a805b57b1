// A loaded model that answers requests; the public Pipeline wraps it and the program uses it.
#pragma once

#include <map>
#include <mutex>

#include "braid/braid.h"
#include "comm/axis_traffic.h"
#include "comm/world.h"
#include "pipeline/deployment.h"
#include "pipeline/devices.h"
#include "pipeline/memory/peaks.h"
#include "pipeline/model.h"
#include "pipeline/settings.h"
#include "weights/adapters/adapter_shelf.h"

namespace braid {

// Tensors of a run by name, in float32, pictures stacked along the batch: what --dump writes.
using Recording = std::map<std::string, Tensor>;

// Whether to measure peaks of memory: measuring resets the process-wide peaks.
enum class Measure { kNothing, kPeaks };

class Engine {
 public:
  // Loads the deployed model. Throws InputError for a synthetic one.
  Engine(Deployment deployment, const Hooks& hooks, Measure measure = Measure::kNothing);
  Engine(const PipelineOptions& options, const Hooks& hooks, Measure measure = Measure::kNothing);

  // Like Pipeline::generate. Also fills `recording` with prompt_embeds, pooled_prompt_embeds,
  // latents_initial, sigmas, timesteps, velocity_first and latents_final. `step` receives the
  // traffic the first rank sent to the others in the first step.
  std::vector<Picture> generate(const Request& request, const Hooks& hooks,
                                Recording* recording = nullptr,
                                TrafficByAxis* step = nullptr) const;

  // Collective where ranks are processes: all ranks get the first rank's text. The others wait for
  // it without a deadline.
  std::string share(const std::string& text) const;

  // The request as it will run: defaults filled in, sizes rounded.
  Settings settle(const Request& request, const Hooks& hooks) const;
  // The settled request in the form of a Request, latents checked; and what may be asked for.
  Request complete(const Request& request, const Hooks& hooks) const;
  ModelInfo info() const;
  const Deployment& deployment() const { return deployment_; }
  at::ScalarType dtype() const { return model().dtype(); }
  GraphUse graph_use() const { return model().denoisers().graph_use(); }
  // Steps of the last request that were evaluated in full, per picture, counted from 0. Empty
  // without a cache.
  const std::vector<std::vector<int>>& full_steps() const { return full_steps_; }
  // On the first rank's process: prompts and pictures of earlier requests that were known.
  EncodedUse encoded_use() const { return model().encoded_use(); }
  LinkUse link() const { return world_->link(); }
  // Bytes read from the model's files while loading, by rank; on the first rank's process only.
  const std::vector<BytesRead>& bytes_read() const { return bytes_read_; }
  // Peaks of all phases so far, by rank; on the first rank's process only, and only if measured.
  const std::vector<RankPeaks>& peaks() const { return rank_peaks_; }
  const PeakMeter* meter() const { return meter_.get(); }

 private:
  void gather_peaks(const Group& world) const;
  const Model& model() const;  // any rank that lives in this process

  Deployment deployment_;
  std::unique_ptr<World> world_;
  int threads_;  // per rank
  mutable AdapterShelf shelf_;
  std::vector<AppliedAdapter> adapters_;        // for requests that bring none
  std::vector<std::unique_ptr<Model>> models_;  // by rank; those in this process
  std::vector<BytesRead> bytes_read_;
  std::unique_ptr<PeakMeter> meter_;
  mutable std::vector<RankPeaks> rank_peaks_;
  mutable std::vector<std::vector<int>> full_steps_;
  mutable std::mutex one_request_at_a_time_;
};

// What may be asked of a model, from its config files alone.
ModelInfo info_of(const Description& description);

// The world, degrees and options of a layout, checked.
// `warn` hears of a long wait for processes to start.
std::unique_ptr<World> make_world(const Deployment& deployment,
                                  const std::function<void(const std::string&)>& warn = {});
Degrees degrees_of(const Layout& layout);
WorldOptions world_of(const Layout& layout);
// What a layout asks for; otherwise as it says for ranks on these devices.
std::chrono::milliseconds deadline_of(const Layout& layout, const std::vector<at::Device>& ranks);

}  // namespace braid
