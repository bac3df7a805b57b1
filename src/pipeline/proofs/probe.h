// A transformer without the rest of a pipeline, and inputs for it: what `verify` compares and
// `bench` times.
#pragma once

#include "braid/braid.h"
#include "models/flux/model.h"
#include "parallel/layout.h"
#include "pipeline/sampling/latents.h"
#include "weights/sharding.h"

namespace braid {

struct ProbeOptions {
  PipelineOptions pipeline = {};
  // "flux1-dev" or "flux1-schnell": random weights of that model's shapes, without files; empty:
  // the transformer of `pipeline.model`.
  std::string synthetic = {};
  int num_double = 0, num_single = 0;                  // blocks of synthetic models; 0: all
  int width = 0, height = 0, max_sequence_length = 0;  // 0: the model's defaults
};

struct Probe {
  FluxConfig config;
  LatentShape latents;
  int text_tokens;
  at::ScalarType dtype;  // to compute in
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
RingForm ring_form_of(const Layout& layout);

}  // namespace braid
