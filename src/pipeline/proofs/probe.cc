#include "pipeline/proofs/probe.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "pipeline/model.h"
#include "pipeline/part_tensors.h"
#include "pipeline/pictures/check_pictures.h"
#include "pipeline/sampling/noise.h"
#include "pipeline/text_stream.h"

namespace braid {
namespace {

constexpr double kGuidance = 3.5;
constexpr float kTimestep = 500;  // of 1000
constexpr std::uint64_t kBranchSeeds = 1'000'003;

int or_else(int asked, int otherwise) { return asked > 0 ? asked : otherwise; }

std::function<Tensor(at::IntArrayRef)> normal_values(const Probe& p, std::uint64_t seed,
                                                     at::Device device) {
  return [&p, device, generator = generator_of(seed)](at::IntArrayRef sizes) {
    return at::randn(sizes, generator, at::kFloat).to(p.dtype).to(device);
  };
}

// ControlNets are of files and take no adapters.
std::shared_ptr<TensorSource> tensors_of(const ProbeOptions& o, const Probe& probe,
                                         const Part& part, at::Device device) {
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
  Probe probe{.files = d.files,
              .family = d.family,
              .size = {.width = side(o.width, otherwise.width),
                       .height = side(o.height, otherwise.height),
                       .frames = limits.defaults.frames},
              .text_tokens = or_else(o.max_sequence_length, limits.defaults.max_sequence_length),
              .dtype = d.dtype};
  probe.references = sizes_looked_at(o.pictures, taken, probe.size);
  if (!o.pictures.references.empty()) probe.text_tokens += int(taken.tokens_behind_prompt);
  if (o.pictures.reference_cache == ReferenceCache::kAuto) probe.seen = taken.references_seen;
  probe.keeps_prefix = d.family->keeps_prefix(o.pictures.reference_cache);
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

DenoiserInput inputs_of(const Probe& p, std::uint64_t seed, at::Device device, int branch) {
  const auto& shape = p.family->shape();
  const auto normal = normal_values(p, seed, device);
  const auto latents = normal({1, p.family->num_tokens(p.size), shape.in_width});
  const auto of_text =
      branch == 0 ? normal : normal_values(p, seed + kBranchSeeds * std::uint64_t(branch), device);
  Condition condition{.text_BTC = of_text({1, p.text_tokens, shape.text_width}), .pooled_BC = {}};
  if (shape.pooled_width > 0) condition.pooled_BC = of_text({1, shape.pooled_width});
  auto in =
      p.family->begin(condition, p.size, kGuidance, at::TensorOptions(p.dtype).device(device));
  if (shape.extra_width > 0) in.extra_BLC = normal({1, latents.size(1), shape.extra_width});
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
  p.family->arrange(in);
  p.family->set_step(in, latents, kTimestep);
  in.step.branch = branch;
  return in;
}

std::unique_ptr<const Denoisers> denoisers_of(const ProbeOptions& o, const Probe& probe,
                                              const Mesh& mesh,
                                              const std::vector<at::Device>& devices,
                                              const Interposed& interposed) {
  const auto device = devices[std::size_t(mesh.world.rank())];
  auto options = model_options(o, device);
  options.ranks_on_device = int(std::count(devices.begin(), devices.end(), device));
  const auto weights = [&](const Part& part, const LoadOptions& load) {
    auto shardings =
        part.sharding({.ranks = mesh.tp.size(), .modulation = o.pipeline.layout.modulation});
    if (interposed.shardings) shardings = interposed.shardings(std::move(shardings));
    return Weights(tensors_of(o, probe, part, device), load, std::move(shardings));
  };
  return std::make_unique<const Denoisers>(DenoiserSetup{
      .family = *probe.family,
      .mesh = mesh,
      .options = options,
      .load = {.dtype = probe.dtype,
               .device = device,
               .packed = PackedWeights::kKept,
               .second_stream = text_stream(*probe.family, options)},
      .weights = weights,
      .offloaded = std::make_shared<OffloadedParts>(o.pipeline.memory.offload, device),
      .interposed = interposed});
}

void add_modulations(std::vector<DenoiserInput>& branches, const Denoisers& denoisers) {
  if (const auto& modulate = denoisers.front().modulate()) {
    const auto made = modulate(branches);
    for (std::size_t b = 0; b < branches.size(); ++b) branches[b].modulations_BM = made[b];
  }
  const auto& controls = denoisers.controls();
  for (std::size_t i = 0; controls.modulate && i < branches.front().controls.size(); ++i) {
    const auto made = controls.modulate({branches.front()}, i).front();
    for (auto& branch : branches) branch.controls[i].modulations_BM = made;
  }
}

void refine_texts(std::vector<DenoiserInput>& branches, const Denoisers& denoisers) {
  if (!denoisers.front().refine()) return;
  for (auto& branch : branches) branch.refined_BTC = Tensor();
  const auto refined = denoisers.front().refine()(branches);
  for (std::size_t b = 0; b < branches.size(); ++b) branches[b].refined_BTC = refined[b];
}

}  // namespace braid
