// One denoiser of a model, loaded on this rank: its blocks with pages, cache and graphs, and the
// layout composed around them. `generate`, `verify` and `bench` evaluate this.
#pragma once

#include "pipeline/graphs/part_graphs.h"
#include "pipeline/loaded/kept_references.h"
#include "pipeline/loaded/loading.h"

namespace braid {

class Denoiser {
 public:
  // Loads this rank's share of the blocks `range` of a part, which `loading` says how to keep.
  // `controls` are the model's ControlNets, if any.
  Denoiser(const Loading& loading, const Part& part, BlockRange range, const Controls& controls);
  Denoiser(const Denoiser&) = delete;
  Denoiser& operator=(const Denoiser&) = delete;

  // One step: the velocities of all branches, on every rank. Collective over the ranks that work on
  // the same pictures.
  std::vector<Tensor> predict(const std::vector<DenoiserInput>& branches) const;

  // Computes this rank's modulations for all steps at once; refine() as refine_over(). Collective
  // over the ranks of a picture; empty where each step computes its own.
  const Modulate& modulate() const { return modulate_; }
  const PredictAll& refine() const { return refine_; }
  const RopeAxes& rope_axes() const { return rope_axes_; }  // DenoiserPart::rope_axes
  KeptReferences& references() const { return *references_; }
  StepCache* cache() const { return cache_.get(); }  // null without options.cache
  void end_pictures() const;                         // of what is kept of them by the cache
  void forget_graphs() const;
  GraphUse graph_use() const { return part_graphs_ ? part_graphs_->use() : steps_->use(); }

 private:
  DenoiserPart load_blocks(const Loading& loading, const Part& part, const BlockRange& range);
  CachedParts load_in_parts(const Loading& loading, const Part& part, const BlockRange& here,
                            DenoiserPart& whole);

  std::unique_ptr<KeptReferences> references_ = std::make_unique<KeptReferences>();
  std::unique_ptr<StepCache> cache_;
  std::optional<PartGraphs> part_graphs_;  // instead of steps_, if a cache decides within a step
  Modulate modulate_;
  PredictAll refine_;
  RopeAxes rope_axes_;
  std::unique_ptr<StepGraph> steps_;
};

// Whether a rank's evaluations are recorded.
StepGraphOptions graph_options(const Loading& loading);

// Evaluates one part of a model while its weights are present, checking the order of copies.
DenoiserPart with_pages(DenoiserPart part, Page page, std::shared_ptr<const OffloadedParts> parts);

}  // namespace braid
