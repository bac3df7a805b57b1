// A model's denoisers on this rank, each for the noise levels and the branches of guidance that it
// serves, and its ControlNets.
#pragma once

#include "pipeline/loaded/denoiser.h"

namespace braid {

class Denoisers {
 public:
  // Collective over the world of the mesh. Call once all else is loaded: on GPUs the memory free
  // then decides which blocks a stage of pipeline parallelism gets. The denoisers share the slots
  // of their pages.
  explicit Denoisers(const Loading& loading);

  // A denoiser, loaded, and its part, which says what steps and branches it serves.
  struct Entry {
    const Part& part;
    std::unique_ptr<const Denoiser> denoiser;
  };
  const std::vector<Entry>& list() const { return list_; }
  std::size_t serving(const StepInfo& step) const { return family_->denoiser_for(step); }
  const Controls& controls() const { return controls_; }

  // References that the model sees once: an evaluation of their own before the first step, after
  // which all others attend to what is kept from it. Collective as keep() and predict().
  void keep_references(const DenoiserInput& references) const;
  void forget_references() const;  // and prefixes, see OncePerPicture

  // Caches of steps keep something of each picture until all end. full_steps() lists the steps in
  // which one of this rank's pictures was evaluated in full, by whichever denoiser, counted from 0.
  bool has_cache() const;
  void end_pictures() const;
  std::vector<int> full_steps(int picture) const;

  GraphUse graph_use() const;  // of all
  void forget_graphs() const;  // as StepGraph::forget()

  // Does what Denoiser::predict() does, each branch with the denoiser that serves it in this step.
  std::vector<Tensor> predict(const std::vector<DenoiserInput>& branches) const;

 private:
  std::vector<Tensor> predict_one_by_one(const std::vector<DenoiserInput>& branches) const;

  std::shared_ptr<const Family> family_;
  Group cfg_;
  Controls controls_;
  std::vector<Entry> list_;
};

// The blocks of this rank, of each denoiser. Collective over the world: ranks exchange their free
// memory.
BlockRange blocks_of_rank(const Family& family, const Mesh& mesh, at::Device device,
                          int ranks_on_device);

// The full steps of all pictures of a round, of which this rank draws `count`; none without caches.
// Collective over all ranks.
std::vector<std::vector<int>> full_steps_of_round(const Denoisers& denoisers, const Mesh& mesh,
                                                  int count, int evaluations);

// While it lives, the caches of steps keep what they need of this rank's pictures.
class CachedPictures {
 public:
  explicit CachedPictures(const Denoisers& denoisers) : denoisers_(denoisers) {}
  CachedPictures(const CachedPictures&) = delete;
  CachedPictures& operator=(const CachedPictures&) = delete;
  ~CachedPictures() { denoisers_.end_pictures(); }

 private:
  const Denoisers& denoisers_;
};

}  // namespace braid
