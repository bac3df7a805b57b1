#include "pipeline/proofs/probe.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/cpu.h"
#include "base/error.h"
#include "models/flux/names.h"
#include "models/flux/sharding.h"
#include "pipeline/families/flux.h"
#include "pipeline/memory/offload.h"
#include "pipeline/model_files.h"
#include "pipeline/planner/job.h"

namespace braid {
namespace {

constexpr int kMostBlocks = 1000;

int or_else(int asked, int otherwise) { return asked > 0 ? asked : otherwise; }

LatentShape latents_of(const ProbeOptions& o, const FluxConfig& config, int width, int height) {
  return {.channels = config.in_channels / 4,
          .height = or_else(o.height, height) / 16 * 2,
          .width = or_else(o.width, width) / 16 * 2};
}

Probe synthetic_probe(const ProbeOptions& o, at::Device device) {
  const auto job = named_job(o.synthetic);
  require(job.has_value(), "synthetic weights have the shapes of flux1-dev or flux1-schnell, not '",
          o.synthetic, "'");
  auto config = job->model.flux;
  const int num_double = or_else(o.num_double, int(config.num_double));
  const int num_single = or_else(o.num_single, int(config.num_single));
  require(num_double <= kMostBlocks && num_single <= kMostBlocks, "a synthetic model should have ",
          "at most ", kMostBlocks, " blocks of a kind");
  config.num_double = num_double;
  config.num_single = num_single;
  return {.config = config,
          .latents = latents_of(o, config, job->width, job->height),
          .text_tokens = or_else(o.max_sequence_length, job->text_tokens),
          .dtype = choose_dtype(o.pipeline.dtype, at::kBFloat16, device)};
}

Weights weights_of(const ProbeOptions& o, const LoadOptions& load, const ShardingTable& shardings) {
  auto checkpoint = find_model(o.pipeline).open_transformer();
  auto names = flux_names(checkpoint);
  return {std::move(checkpoint), std::move(names), load, shardings};
}

}  // namespace

Probe probe_of(const ProbeOptions& o, at::Device device) {
  if (!o.synthetic.empty()) return synthetic_probe(o, device);
  require(o.num_double == 0 && o.num_single == 0,
          "numbers of blocks can be chosen for synthetic weights only");
  const auto files = find_model(o.pipeline);
  const auto checkpoint = files.open_transformer();
  const auto config = read_transformer_config(files, checkpoint);
  const auto defaults = read_defaults(files, config.guidance_embeds);
  return {.config = config,
          .latents = latents_of(o, config, defaults.width, defaults.height),
          .text_tokens = or_else(o.max_sequence_length, defaults.max_sequence_length),
          .dtype = choose_dtype(o.pipeline.dtype, checkpoint.dtype(), device)};
}

DenoiserInput inputs_of(const Probe& p, std::uint64_t seed, at::Device device) {
  const auto normal = [&, generator = generator_of(seed)](at::IntArrayRef shape) {
    return at::randn(shape, generator, at::kFloat).to(p.dtype).to(device);
  };
  const auto on_device = at::TensorOptions(at::kFloat).device(device);
  DenoiserInput in{.noise = {normal({1, p.latents.num_tokens(), p.config.in_channels}),
                             position_ids(p.latents, device)},
                   .text = {normal({1, p.text_tokens, p.config.text_width}),
                            at::zeros({p.text_tokens, 3}, on_device)},
                   .pooled_BC = normal({1, p.config.pooled_width}),
                   .timestep_B = at::full({1}, 0.5, on_device).to(p.dtype)};
  if (p.config.guidance_embeds) in.guidance_B = at::full({1}, 3.5, on_device);
  return in;
}

RingForm ring_form_of(const Layout& layout) {
  return layout.gather_keys ? RingForm::kGather : RingForm::kShift;
}

ShardingTable shardings_of(const ProbeOptions& o, const Probe& probe, const Mesh& mesh) {
  const bool is_shared = o.pipeline.layout.shard_modulation;
  return flux_sharding(probe.config, mesh.tp.size(),
                       is_shared ? SharedModulation::kYes : SharedModulation::kNo);
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
                         .paging = offloaded->transformer()};
  const auto run = run_of_rank(probe.config, mesh, device, ranks_on_device);
  const auto w =
      o.synthetic.empty() ? weights_of(o, load, shardings) : Weights::synthetic(load, shardings);
  const auto flux = std::make_shared<const Flux>(probe.config, w, std::move(attend), run);
  offloaded->finish();
  return [flux, offloaded, page = w.page()](const DenoiserInput& in, const Tensor& state) {
    const auto in_use = page.use();
    const auto made = flux->advance(in, state);
    offloaded->check_order();
    return made;
  };
}

}  // namespace braid
