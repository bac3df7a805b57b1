#include "pipeline/proofs/probe.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "pipeline/memory/coded.h"
#include "pipeline/memory/offload.h"
#include "pipeline/model.h"
#include "pipeline/part_tensors.h"
#include "pipeline/pictures/check_pictures.h"
#include "pipeline/sampling/noise.h"

namespace braid {
namespace {

constexpr int kMostBlocks = 1000;
constexpr double kGuidance = 3.5;
constexpr float kTimestep = 500;  // of 1000

int or_else(int asked, int otherwise) { return asked > 0 ? asked : otherwise; }

Probe probe_of_family(const ProbeOptions& o, std::shared_ptr<const Family> family,
                      at::ScalarType dtype) {
  const auto& limits = family->description().limits;
  const auto side = [&](int asked, int otherwise) {
    return or_else(asked, otherwise) / limits.size_multiple * limits.size_multiple;
  };
  std::vector<PictureSize> references;
  if (!o.references.empty())
    check_pictures({.pictures = {.references = o.references}}, limits.pictures);
  for (const auto& picture : o.references) {
    const auto fitted = limits.pictures.fit_reference(picture);
    references.push_back({.width = fitted.width, .height = fitted.height});
  }
  return {.family = family,
          .size = {.width = side(o.width, limits.defaults.width),
                   .height = side(o.height, limits.defaults.height)},
          .text_tokens = or_else(o.max_sequence_length, limits.defaults.max_sequence_length),
          .dtype = dtype,
          .references = std::move(references)};
}

Probe synthetic_probe(const ProbeOptions& o, at::Device device) {
  const auto family = named_family(o.synthetic);
  require(family != nullptr, "synthetic weights have the shapes of ", list_of_named_models(),
          ", not '", o.synthetic, "'");
  for (const int blocks : o.blocks)
    require(blocks <= kMostBlocks, "a synthetic model should have at most ", kMostBlocks,
            " blocks of a kind");
  return probe_of_family(o, family->with_blocks(o.blocks),
                         choose_dtype(o.pipeline.dtype, at::kBFloat16, device));
}

std::shared_ptr<TensorSource> denoiser_tensors(const ProbeOptions& o, const Family& family,
                                               at::Device device) {
  const auto& part = family.part(Part::Role::kDenoiser);
  const AdaptedModel adapted{.adapters = open_adapters(o.pipeline.adapters),
                             .mode = o.pipeline.adapter_mode,
                             .device = device};
  if (!o.synthetic.empty()) return source_of_part(family, part, nullptr, adapted).tensors;
  const auto files = find_model(o.pipeline);
  return source_of_part(family, part, &files, adapted).tensors;
}

}  // namespace

Probe probe_of(const ProbeOptions& o, at::Device device) {
  if (!o.synthetic.empty()) return synthetic_probe(o, device);
  require(std::all_of(o.blocks.begin(), o.blocks.end(), [](int n) { return n == 0; }),
          "numbers of blocks can be chosen for synthetic weights only");
  const auto files = find_model(o.pipeline);
  return probe_of_family(o, open_family(files),
                         choose_dtype(o.pipeline.dtype, files.open("transformer").dtype(), device));
}

DenoiserInput inputs_of(const Probe& p, std::uint64_t seed, at::Device device) {
  const auto& shape = p.family->shape();
  const auto normal = [&, generator = generator_of(seed)](at::IntArrayRef sizes) {
    return at::randn(sizes, generator, at::kFloat).to(p.dtype).to(device);
  };
  const auto latents = normal({1, p.family->num_tokens(p.size), shape.in_width});
  Condition condition{.text_BTC = normal({1, p.text_tokens, shape.text_width}), .pooled_BC = {}};
  if (shape.pooled_width > 0) condition.pooled_BC = normal({1, shape.pooled_width});
  auto in =
      p.family->begin(condition, p.size, kGuidance, at::TensorOptions(p.dtype).device(device));
  if (shape.beside_width > 0) in.beside_BLC = normal({1, latents.size(1), shape.beside_width});
  for (const auto& size : p.references) {
    auto sizes = p.family->latent_shape(size);
    sizes.insert(sizes.begin(), 1);
    in.references.push_back(p.family->reference(normal(sizes), int(in.references.size())));
  }
  p.family->set_step(in, latents, kTimestep);
  return in;
}

ShardingTable shardings_of(const ProbeOptions& o, const Probe& probe, const Mesh& mesh) {
  return probe.family->part(Part::Role::kDenoiser)
      .sharding({.ranks = mesh.tp.size(), .modulation = o.pipeline.layout.modulation});
}

PredictPart transformer_of(const ProbeOptions& o, const Probe& probe, const Mesh& mesh,
                           const std::vector<at::Device>& devices, const ShardingTable& shardings,
                           Attend attend) {
  const auto device = devices[std::size_t(mesh.world.rank())];
  const auto ranks_on_device = int(std::count(devices.begin(), devices.end(), device));
  const auto& memory = o.pipeline.memory;
  const auto offloaded = std::make_shared<OffloadedParts>(memory.offload, device);
  const LoadOptions load{.dtype = probe.dtype,
                         .device = device,
                         .tensor_parallel = mesh.tp,
                         .quantize = memory.quantize,
                         .keep_dense = memory.keep_dense,
                         .coded = coded_on(device),
                         .paging = offloaded->transformer()};
  const auto run = blocks_of_rank(*probe.family, mesh, device, ranks_on_device);
  const Weights w(denoiser_tensors(o, *probe.family, device), load, shardings);
  auto denoiser = probe.family->load_denoiser(w, std::move(attend), run);
  offloaded->finish();
  return with_pages(std::move(denoiser), w.page(), offloaded);
}

}  // namespace braid
