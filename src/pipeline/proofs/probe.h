// A model's denoisers without the rest of a pipeline, and inputs for them: `verify` compares what
// they make and `bench` times it.
#pragma once

#include "parallel/layout.h"
#include "pipeline/denoisers/denoisers.h"
#include "pipeline/deployment.h"

namespace braid {

struct ProbeOptions {
  PipelineOptions pipeline = {};
  // Of these options, where it is there already; else they are deployed.
  std::optional<Deployment> deployed = {};
  // A model known by name: random weights of its shapes, without files. Empty: the transformer of
  // `pipeline.model`.
  std::string synthetic = {};
  std::vector<int> blocks = {};  // of synthetic models, one count per kind; 0: all
  int width = 0, height = 0, max_sequence_length = 0;  // 0: the model's defaults
  PicturesIn pictures = {};                            // only their sizes matter
};

struct Probe {
  std::shared_ptr<const ModelFiles> files = {};  // null: a synthetic model
  std::shared_ptr<const Family> family;
  PictureSize size;
  int text_tokens;
  at::ScalarType dtype;                      // to compute in
  std::vector<PictureSize> references = {};  // seen by the model
  PicturesTaken::Seen seen = PicturesTaken::Seen::kInEveryStep;
  bool keeps_prefix = false;  // as Family::keeps_prefix()

  bool are_seen_once() const { return seen == PicturesTaken::Seen::kOnce && !references.empty(); }
  std::int64_t tokens() const;  // pads and references included
};

// The options of a Model that count for a denoiser alone.
ModelOptions model_options(const ProbeOptions& options, at::Device device);

// Throws InputError for missing models and unknown names.
Deployment deployment_of(const ProbeOptions& options);
Probe probe_of(const ProbeOptions& options, const Deployment& deployment);

// Normal values, the same on every rank, for batch 1; a timestep in the middle. Each ControlNet has
// a picture to follow; references seen once are left out. Branches of guidance differ in their
// text.
DenoiserInput inputs_of(const Probe& probe, std::uint64_t seed, at::Device device, int branch = 0);
std::vector<Tokens> references_of(const Probe& probe, std::uint64_t seed, at::Device device);

// The denoisers under the layout of `mesh`, kept as `pipeline.memory` says. Collective over its
// world.
std::unique_ptr<const Denoisers> denoisers_of(const ProbeOptions& options, const Probe& probe,
                                              const Mesh& mesh,
                                              const std::vector<at::Device>& devices,
                                              const Interposed& interposed = {});

// Inputs as a step receives them: with what is computed once per picture, the modulations, and the
// text after the blocks that see only it. One input for each branch that the ranks of `mesh` share.
// Collective over the ranks of a picture.
void add_modulations(std::vector<DenoiserInput>& branches, const Denoisers& denoisers);
void refine_texts(std::vector<DenoiserInput>& branches, const Denoisers& denoisers);

}  // namespace braid
