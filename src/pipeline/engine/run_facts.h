// What an engine did when it loaded a model, and what one of its runs did. The first rank's process
// knows all of it; other processes know what happened on their own ranks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "braid/hooks.h"
#include "comm/axis_traffic.h"
#include "comm/world.h"
#include "pipeline/engine/phase_log.h"
#include "pipeline/graphs/step_graph.h"
#include "pipeline/loaded/encoded_cache.h"
#include "pipeline/memory/peaks.h"
#include "pipeline/request/settings.h"
#include "weights/sources/row_ranges.h"

namespace braid {

// Tensors of a run by name, in float32, pictures stacked along the batch: what --dump writes.
using Recording = std::map<std::string, Tensor>;

struct LoadFacts {
  double seconds = 0;
  at::ScalarType dtype = at::kFloat;       // that the model computes in
  LinkUse link = {};                       // between the ranks
  std::vector<BytesRead> bytes_read = {};  // from the model's files, by rank
};

struct RunFacts {
  LoadFacts load = {};
  Settings settings = {};  // the request as it ran
  PhaseLog phases = {};    // after loading
  MeasuredPeaks peaks = {};
  // These count all runs since the model was loaded:
  GraphUse graph = {};
  EncodedUse encoded = {};  // prompts and pictures of earlier requests that were known
  // Lists for each picture, with a cache, the steps that were evaluated in full, counted from 0.
  std::vector<std::vector<int>> full_steps = {};
  TrafficByAxis step_traffic = {};  // that the first rank sent to the others in the first step
  // RecordTensors::kYes asks for these: prompt_embeds, pooled_prompt_embeds, latents_initial,
  // sigmas, timesteps, velocity_first and latents_final.
  Recording recording = {};
};

struct Generated {
  std::vector<Picture> pictures = {};
  RunFacts facts = {};
};

// What a run records beside its facts, and where it ends.
enum class RecordTensors { kNo, kYes };
enum class RunUntil { kLatents, kPictures };  // kLatents: denoised, but not decoded
struct RunOptions {
  RecordTensors record = RecordTensors::kNo;
  RunUntil until = RunUntil::kPictures;
};

}  // namespace braid
