// A denoiser without the rest of a pipeline, its ControlNets, and inputs for them: `verify`
// compares it and `bench` times it.
#pragma once

#include "parallel/layout.h"
#include "pipeline/deployment.h"
#include "pipeline/model_options.h"

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

  bool are_seen_once() const { return seen == PicturesTaken::Seen::kOnce && !references.empty(); }
  std::int64_t tokens() const;  // pads and references included
};

// The options of a Model that count for a denoiser alone.
ModelOptions model_options(const ProbeOptions& options, at::Device device);

// Throws InputError for missing models and unknown names.
Deployment deployment_of(const ProbeOptions& options);
Probe probe_of(const ProbeOptions& options, const Deployment& deployment);

// Normal values, the same on every rank, for batch 1; a timestep in the middle. Each ControlNet has
// a picture to follow; references seen once are left out.
DenoiserInput inputs_of(const Probe& probe, std::uint64_t seed, at::Device device);
std::vector<Tokens> references_of(const Probe& probe, std::uint64_t seed, at::Device device);

// This rank's share of the transformer, kept as `pipeline.memory` says. Collective over the world
// of `mesh`.
DenoiserPart transformer_of(const ProbeOptions& options, const Probe& probe, const Mesh& mesh,
                            const std::vector<at::Device>& devices, const ShardingTable& shardings,
                            Attend attend);

// The same for the model's ControlNets, if any.
Controls controls_of(const ProbeOptions& options, const Probe& probe, const Mesh& mesh,
                     at::Device device);

// `in` as a step receives it: with the modulations computed once per picture. Collective over the
// ranks of a picture.
DenoiserInput as_in_a_step(DenoiserInput in, const Mesh& mesh, const DenoiserPart& transformer,
                           const Controls& controls);

// `in` with its text after the blocks that see only it, computed once per picture. Collective
// likewise.
DenoiserInput with_refined_text(DenoiserInput in, const Mesh& mesh,
                                const DenoiserPart& transformer);

// The sharding of the weights under the layout of `options`.
ShardingTable shardings_of(const ProbeOptions& options, const Probe& probe, const Mesh& mesh);

}  // namespace braid
