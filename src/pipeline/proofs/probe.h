// A denoiser without the rest of a pipeline, its ControlNets, and inputs for them: what `verify`
// compares and `bench` times.
#pragma once

#include "parallel/layout.h"
#include "pipeline/families/family.h"

namespace braid {

struct ProbeOptions {
  PipelineOptions pipeline = {};
  // A model that is known by name: random weights of its shapes, without files; empty: the
  // transformer of `pipeline.model`.
  std::string synthetic = {};
  std::vector<int> blocks = {};  // of synthetic models, a number a kind; 0: all
  int width = 0, height = 0, max_sequence_length = 0;  // 0: the model's defaults
  PicturesIn pictures = {};                            // of these only the sizes matter
};

struct Probe {
  std::shared_ptr<const Family> family;
  PictureSize size;
  int text_tokens;
  at::ScalarType dtype;                      // to compute in
  std::vector<PictureSize> references = {};  // that the model looks at
  PicturesTaken::Seen seen = PicturesTaken::Seen::kInEveryStep;

  bool are_seen_once() const { return seen == PicturesTaken::Seen::kOnce && !references.empty(); }
  std::int64_t tokens() const;  // pads included, and references
};

// Throws InputError for models and names that are not there.
Probe probe_of(const ProbeOptions& options, at::Device device);

// Normal values, the same on every rank, for a batch of one; a timestep in the middle. Each
// ControlNet has a picture to follow; references that are seen once are left out.
DenoiserInput inputs_of(const Probe& probe, std::uint64_t seed, at::Device device);
std::vector<Tokens> references_of(const Probe& probe, std::uint64_t seed, at::Device device);

// This rank's share of the transformer, kept as `pipeline.memory` says. Collective over the world
// of `mesh`.
DenoiserPart transformer_of(const ProbeOptions& options, const Probe& probe, const Mesh& mesh,
                            const std::vector<at::Device>& devices, const ShardingTable& shardings,
                            Attend attend);

// Likewise of the model's ControlNets, if it has any.
Controls controls_of(const ProbeOptions& options, const Probe& probe, const Mesh& mesh,
                     at::Device device);

// `in` as a step of a picture gets it: with what modulates the blocks, which is made once a
// picture. Collective over the ranks of a picture.
DenoiserInput as_in_a_step(DenoiserInput in, const Mesh& mesh, const DenoiserPart& transformer,
                           const Controls& controls);

// As the layout of `options` shares the weights.
ShardingTable shardings_of(const ProbeOptions& options, const Probe& probe, const Mesh& mesh);

}  // namespace braid
