// A denoiser without the rest of a pipeline, and inputs for it: what `verify` compares and `bench`
// times.
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
  std::vector<Pixels> references = {};                 // of these only the sizes matter
};

struct Probe {
  std::shared_ptr<const Family> family;
  PictureSize size;
  int text_tokens;
  at::ScalarType dtype;  // to compute in
  std::vector<PictureSize> references = {};

  std::int64_t tokens() const {  // pads included
    const auto& shape = family->shape();
    return shape.padded(family->num_tokens(size)) + shape.padded(text_tokens);
  }
};

// Throws InputError for models and names that are not there.
Probe probe_of(const ProbeOptions& options, at::Device device);

// Normal values, the same on every rank, for a batch of one; a timestep in the middle.
DenoiserInput inputs_of(const Probe& probe, std::uint64_t seed, at::Device device);

// This rank's share of the transformer, kept as `pipeline.memory` says. Collective over the world
// of `mesh`.
PredictPart transformer_of(const ProbeOptions& options, const Probe& probe, const Mesh& mesh,
                           const std::vector<at::Device>& devices, const ShardingTable& shardings,
                           Attend attend);

// As the layout of `options` shares the weights.
ShardingTable shardings_of(const ProbeOptions& options, const Probe& probe, const Mesh& mesh);

}  // namespace braid
