#include "pipeline/proofs/probe.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "pipeline/memory/offload.h"
#include "pipeline/model.h"
#include "pipeline/part_tensors.h"
#include "pipeline/pictures/check_pictures.h"
#include "pipeline/sampling/noise.h"
#include "pipeline/text_stream.h"

namespace braid {
namespace {

constexpr double kGuidance = 3.5;
constexpr float kTimestep = 500;  // of 1000

int or_else(int asked, int otherwise) { return asked > 0 ? asked : otherwise; }

LoadOptions load_options(const ProbeOptions& o, const Probe& probe, const Mesh& mesh,
                         at::Device device) {
  return {.dtype = probe.dtype,
          .device = device,
          .tensor_parallel = mesh.tp,
          .quantize = o.pipeline.memory.quantize,
          .coded = Coded::kKept,
          .second_stream = text_stream(*probe.family, model_options(o, device))};
}

std::function<Tensor(at::IntArrayRef)> normal_values(const Probe& p, std::uint64_t seed,
                                                     at::Device device) {
  return [&p, device, generator = generator_of(seed)](at::IntArrayRef sizes) {
    return at::randn(sizes, generator, at::kFloat).to(p.dtype).to(device);
  };
}

std::shared_ptr<TensorSource> denoiser_tensors(const ProbeOptions& o, const Probe& probe,
                                               at::Device device) {
  const auto& part = probe.family->part(Part::Role::kDenoiser);
  const AdaptedModel adapted{
      .adapters = probe.files ? probe.files->adapters : open_adapters(o.pipeline.adapters),
      .mode = o.pipeline.adapter_mode,
      .device = device};
  return source_of_part(*probe.family, part, probe.files.get(), adapted).tensors;
}

}  // namespace

ModelOptions model_options(const ProbeOptions& o, at::Device device) {
  return {.device = device,
          .layout = o.pipeline.layout,
          .memory = o.pipeline.memory,
          .graphs = o.pipeline.graphs,
          .text_stream = o.pipeline.text_stream};
}

Deployment deployment_of(const ProbeOptions& o) {
  if (o.deployed) return *o.deployed;
  return deploy({.pipeline = o.pipeline, .synthetic = o.synthetic, .blocks = o.blocks});
}

Probe probe_of(const ProbeOptions& o, const Deployment& d) {
  const auto& limits = d.family->description().limits;
  const auto side = [&](int asked, int otherwise) {
    return or_else(asked, otherwise) / limits.size_multiple * limits.size_multiple;
  };
  const auto& taken = limits.pictures;
  if (!o.pictures.is_empty()) check_pictures({.pictures = o.pictures}, taken);
  const auto otherwise = size_without_request(o.pictures, limits);
  Probe probe{
      .files = d.files,
      .family = d.family,
      .size = {.width = side(o.width, otherwise.width), .height = side(o.height, otherwise.height)},
      .text_tokens = or_else(o.max_sequence_length, limits.defaults.max_sequence_length),
      .dtype = d.dtype};
  probe.references = sizes_looked_at(o.pictures, taken, probe.size);
  if (!o.pictures.references.empty()) probe.text_tokens += int(taken.tokens_behind_prompt);
  if (o.pictures.reference_cache == ReferenceCache::kAuto) probe.seen = taken.references_seen;
  return probe;
}

std::int64_t Probe::tokens() const {
  const auto& shape = family->shape();
  auto sum = shape.padded(family->num_tokens(size)) + shape.padded(text_tokens);
  for (const auto& reference : references) sum += family->num_tokens(reference);
  return sum;
}

std::vector<Tokens> references_of(const Probe& p, std::uint64_t seed, at::Device device) {
  const auto normal = normal_values(p, seed + 1, device);
  std::vector<Tokens> references;
  for (const auto& size : p.references) {
    auto sizes = p.family->latent_shape(size);
    sizes.insert(sizes.begin(), 1);
    references.push_back(p.family->reference(normal(sizes), int(references.size())));
  }
  return references;
}

DenoiserInput inputs_of(const Probe& p, std::uint64_t seed, at::Device device) {
  const auto& shape = p.family->shape();
  const auto normal = normal_values(p, seed, device);
  const auto latents = normal({1, p.family->num_tokens(p.size), shape.in_width});
  Condition condition{.text_BTC = normal({1, p.text_tokens, shape.text_width}), .pooled_BC = {}};
  if (shape.pooled_width > 0) condition.pooled_BC = normal({1, shape.pooled_width});
  auto in =
      p.family->begin(condition, p.size, kGuidance, at::TensorOptions(p.dtype).device(device));
  if (shape.beside_width > 0) in.beside_BLC = normal({1, latents.size(1), shape.beside_width});
  if (!p.are_seen_once()) in.references = references_of(p, seed, device);
  const auto& taken = p.family->description().limits.pictures;
  for (const int modes : taken.controlnet_modes) {
    const int net = int(in.controls.size());
    const auto mode = modes > 0 ? std::optional(0) : std::nullopt;
    auto& control = in.controls.emplace_back(p.family->control(in, net, mode, kGuidance));
    control.net = net;
    control.x_BNC = normal(latents.sizes());
    control.scale = at::ones({}, at::TensorOptions(at::kFloat).device(device));
  }
  p.family->set_step(in, latents, kTimestep);
  return in;
}

ShardingTable shardings_of(const ProbeOptions& o, const Probe& probe, const Mesh& mesh) {
  return probe.family->part(Part::Role::kDenoiser)
      .sharding({.ranks = mesh.tp.size(), .modulation = o.pipeline.layout.modulation});
}

DenoiserPart transformer_of(const ProbeOptions& o, const Probe& probe, const Mesh& mesh,
                            const std::vector<at::Device>& devices, const ShardingTable& shardings,
                            Attend attend) {
  const auto device = devices[std::size_t(mesh.world.rank())];
  const auto ranks_on_device = int(std::count(devices.begin(), devices.end(), device));
  const auto offloaded = std::make_shared<OffloadedParts>(o.pipeline.memory.offload, device);
  auto load = load_options(o, probe, mesh, device);
  load.keep_dense = o.pipeline.memory.keep_dense;
  load.paging = offloaded->transformer();
  const auto run = blocks_of_rank(*probe.family, mesh, device, ranks_on_device);
  const Weights w(denoiser_tensors(o, probe, device), load, shardings);
  auto denoiser = probe.family->load_denoiser(w, std::move(attend), run);
  offloaded->finish();
  return with_pages(std::move(denoiser), w.page(), offloaded);
}

Controls controls_of(const ProbeOptions& o, const Probe& probe, const Mesh& mesh,
                     at::Device device) {
  if (probe.family->parts(Part::Role::kControl).empty()) return {};
  OffloadedParts offloaded(o.pipeline.memory.offload, device);
  const auto weights = [&](const Part& part) {
    auto load = load_options(o, probe, mesh, device);
    load.paging = offloaded.control();
    return Weights(
        tensors_of_part(part, *probe.files), load,
        part.sharding({.ranks = mesh.tp.size(), .modulation = o.pipeline.layout.modulation}));
  };
  auto controls =
      probe.family->load_controls(weights, attend_over(mesh, o.pipeline.layout.ring_form));
  offloaded.finish();
  return controls;
}

DenoiserInput as_in_a_step(DenoiserInput in, const Mesh& mesh, const DenoiserPart& transformer,
                           const Controls& controls) {
  if (const auto modulate = modulate_over(mesh.stages, transformer))
    in.modulations_BM = modulate({in}).front();
  for (std::size_t i = 0; controls.modulate && i < in.controls.size(); ++i)
    in.controls[i].modulations_BM = controls.modulate({in}, i).front();
  return in;
}

DenoiserInput with_refined_text(DenoiserInput in, const Mesh& mesh,
                                const DenoiserPart& transformer) {
  const auto refine = refine_over(mesh, transformer);
  if (!refine) return in;
  in.refined_BTC = Tensor();
  const auto refined = refine(std::vector(std::size_t(mesh.cfg.size()), in));
  in.refined_BTC = refined[std::size_t(mesh.cfg.rank())];
  return in;
}

}  // namespace braid
