// The subject of a plan: a model and a request.
#pragma once

#include "parallel/ulysses.h"
#include "pipeline/families/family.h"
#include "pipeline/memory/stated.h"
#include "pipeline/planner/costs/held.h"
#include "pipeline/planner/grid.h"
#include "pipeline/planner/pictures.h"
#include "pipeline/planner/tensors.h"

namespace braid {

struct PlanJob {
  std::shared_ptr<const Family> family;
  at::ScalarType dtype = at::kBFloat16;
  int width = 1024, height = 1024, frames = 1, text_tokens = 512, steps = 28;
  int skipped_steps = 0;  // before these, where drawing starts from a picture
  Sampler sampler = Sampler::kEuler;
  int batch_size = 1, num_pictures = 1;  // denoised together by a rank; in the whole run
  // Pictures of a round that data parallel ranks do not share alike: set by job_on_grid() for
  // job_of_rank(), which gives each rank its batch.
  std::optional<int> unequal_round = {};
  int branches = 1;  // 2 with true guidance: the prompt and the negative one
  PlannedPictures pictures = {};
  Layout layout = {};  // how shared work is split; its degrees do not count
  VaeTiling tiling = VaeTiling::kAuto;
  bool is_on_host = false;  // computes on CPUs: device memory is host memory

  Memory memory = {};              // how weights are kept
  StatedMemory stated = {};        // settings of it that a budget must not change
  bool is_budget_implied = false;  // see plan_memory()
  Graphs graphs = Graphs::kAuto;
  bool caches_steps = false;
  AdapterMode adapters = AdapterMode::kAuto;
  std::shared_ptr<const ModelTensors> tensors = {};  // none: surveyed() finds them
  std::shared_ptr<PartFigures> figures = {};         // of these tensors; copies of a job share them

  const DenoiserShape& shape() const { return family->shape(); }
  PictureSize size() const { return {.width = width, .height = height, .frames = frames}; }
  // The transformer sees this many, pads included.
  std::int64_t image_tokens() const { return shape().padded(family->num_tokens(size())); }
  std::int64_t padded_text_tokens() const {
    return shape().padded(text_tokens + pictures.tokens_behind_prompt);
  }
  // Whether the denoiser's prefix is evaluated before the first step.
  bool keeps_prefix() const { return family->keeps_prefix(pictures.cache); }
  bool records_steps() const;  // on a GPU that can record
  // Counts those of each step but the last one, which takes one.
  int evaluations_of_step() const { return steps > 1 ? evaluations_per_step(sampler) : 1; }
  // Counts evaluations of the denoiser for each branch of a picture.
  int evaluations() const { return (steps - 1) * evaluations_per_step(sampler) + 1; }
  // Noise levels of these: Heun evaluates most of them twice.
  int num_levels() const { return sampler == Sampler::kHeun ? steps : evaluations(); }
  std::int64_t element_bytes() const { return std::int64_t(c10::elementSize(dtype)); }
};

// A job for a family, with its request defaults.
PlanJob job_of_family(std::shared_ptr<const Family> family);

// Adds the tensors, from the files or else from the model's sizes alone. They depend on the job's
// dtype and modulation and on the layers named in memory.keep_dense.
PlanJob surveyed(PlanJob job, const ModelFiles* files = nullptr);

// The job with a request in place of its defaults. The request may lack prompts; its values are
// taken as they are (settings.h checks them).
PlanJob with_request(PlanJob job, const Request& request);

struct TokenCounts {
  std::int64_t image, text, references = 0;
  std::int64_t crossed = 0;  // text seen by cross-attention alone, whole on every rank

  std::int64_t all() const { return image + text + references; }
  std::int64_t prefix() const { return text + references; }
  std::int64_t of(const BlockCost& kind) const;  // tokens that a block of this kind computes on
};

// One rank's share of a step.
struct StepShare {
  std::int64_t branches;            // evaluations of the transformer, one after another
  std::int64_t batch;               // pictures in each
  TokenCounts own_tokens;           // outside of attention
  std::int64_t heads, kv_heads;     // after tensor parallelism
  TradedHeads attended_heads;       // of these, in attention under Ulysses
  std::int64_t heads_sent;          // of q, k and v, sent to all ranks that trade heads
  std::int64_t kv_heads_sent;       // of these, of k and v
  TokenCounts query_tokens;         // of attention: of the ranks that trade heads
  TokenCounts key_tokens;           // the same, plus references kept from their one evaluation
  TokenCounts sent_keys;            // that this rank sends on around the ring
  TokenCounts most_received_keys;   // of a rank of the ring: as many arrive here
  TokenCounts tokens_before_steps;  // outside of attention, of a prefix before the first step
};

// Uneven shares follow share_of(), as in a run.
StepShare share_of_step(const PlanJob& job, const Degrees& grid, int rank);

// Pictures that all ranks of a grid denoise together: pipeline parallelism takes one batch per
// stage.
std::int64_t pictures_of_round(const PlanJob& job, const Degrees& grid);

// The same for a job on this grid, whose batch is a rank's share of a round.
std::int64_t pictures_of_round_on(const Degrees& grid, const PlanJob& job);

// The job with the batch of the rank that draws most pictures of a round; then with that of `rank`.
PlanJob job_on_grid(PlanJob job, const Degrees& grid);
PlanJob job_of_rank(PlanJob job, const Degrees& grid, int rank);

// Keys of a whole picture: what a query attends to.
TokenCounts all_keys(const PlanJob& job);

}  // namespace braid
