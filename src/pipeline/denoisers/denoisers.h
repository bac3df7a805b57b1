// All that denoises, loaded on this rank: a model's denoisers and its ControlNets.
#pragma once

#include "pipeline/denoisers/denoiser.h"

namespace braid {

class Denoisers {
 public:
  // Collective over the world of the mesh. Call once all else is loaded: on GPUs the memory free
  // then decides which blocks a stage of pipeline parallelism gets.
  explicit Denoisers(const DenoiserSetup& setup);

  const Denoiser& front() const { return *list_.front(); }
  const Controls& controls() const { return controls_; }

  // References that the model sees once: an evaluation of their own before the first step, after
  // which all others attend to what is kept from it. Collective as keep() and predict().
  void keep_references(const DenoiserInput& references) const;
  // The prefixes of a step's branches likewise (TextTokens::kPrefix).
  void keep_prefixes(const std::vector<DenoiserInput>& branches) const;
  void forget_references() const;
  GraphUse graph_use() const;  // of all
  void forget_graphs() const;  // as StepGraph::forget()

  // As Denoiser::predict(), with the one that serves the step.
  std::vector<Tensor> predict(const std::vector<DenoiserInput>& branches) const;

 private:
  Controls controls_;
  std::vector<std::unique_ptr<const Denoiser>> list_;
};

// The prefixes of a batch's branches, kept until this goes. Leaves the branches without them.
class KeptPrefixes {
 public:
  KeptPrefixes(const Denoisers& denoisers, std::vector<DenoiserInput>& branches);
  ~KeptPrefixes() { denoisers_.forget_references(); }
  KeptPrefixes(const KeptPrefixes&) = delete;
  KeptPrefixes& operator=(const KeptPrefixes&) = delete;

 private:
  const Denoisers& denoisers_;
};

// The blocks of this rank. Collective over the world: ranks exchange their free memory.
BlockRange blocks_of_rank(const Family& family, const Mesh& mesh, at::Device device,
                          int ranks_on_device);

}  // namespace braid
