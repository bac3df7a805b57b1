// A model's denoisers without the rest of a pipeline, and inputs for them: `verify` compares what
// they make and `bench` times it.
#pragma once

#include "pipeline/deployment/deployment.h"
#include "pipeline/loaded/once_per_picture.h"

namespace braid {

// Size, text and pictures to evaluate the denoisers for.
struct ProbeOptions {
  int width = 0, height = 0, max_sequence_length = 0;  // 0: those that `plan` takes
  std::optional<int> layers = {};                      // as in a Request
  PicturesIn pictures = {};                            // only their sizes matter
};

struct Probe {
  std::shared_ptr<const Family> family;
  PictureSize size;
  int text_tokens;
  at::ScalarType dtype;                      // to compute in
  std::vector<PictureSize> references = {};  // seen by the model
  PicturesTaken::ReferenceUse reference_use = PicturesTaken::ReferenceUse::kInEveryStep;
  Prefix prefix = Prefix::kInEveryStep;
  Request request = {};  // that is probed

  bool keeps_references() const {
    return reference_use == PicturesTaken::ReferenceUse::kOnce && !references.empty();
  }
  std::int64_t tokens() const;  // pads and references included
};

// Throws InputError for a size, pictures or layers that the model does not take.
Probe probe_of(const ProbeOptions& options, const Deployment& deployment);

// A step for each range of noise levels that denoisers of the family serve, in the middle of it.
std::vector<StepInfo> steps_of(const Family& family);
// How many branches are evaluated: those that the layout shares out, and 2 if some denoisers serve
// one branch only.
int num_branches_of(const Deployment& deployment);

// Normal values, the same on every rank, for batch 1. Each ControlNet has a picture to follow;
// without references that are cached. Branches of guidance differ in their text.
DenoiserInput inputs_of(const Probe& probe, std::uint64_t seed, at::Device device,
                        const StepInfo& step = {.timestep = 500});
// The inputs of so many branches of a step.
std::vector<DenoiserInput> branches_of(const Probe& probe, std::uint64_t seed, at::Device device,
                                       StepInfo step, int num_branches);
std::vector<Tokens> references_of(const Probe& probe, std::uint64_t seed, at::Device device);

// The denoisers under the layout of `mesh`, kept as the deployment says. Collective over its world.
std::unique_ptr<const Denoisers> denoisers_of(const Mesh& mesh, const Deployment& deployment,
                                              const Interposed& interposed = {});

// ControlNets' modulations, which all branches share. Collective over the ranks of a picture.
void modulate_controls(std::vector<DenoiserInput>& branches, const Controls& controls);

}  // namespace braid
