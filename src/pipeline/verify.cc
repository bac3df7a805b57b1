#include "pipeline/verify.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "base/error.h"
#include "comm/thread.h"
#include "models/flux/model.h"
#include "models/flux/names.h"
#include "pipeline/engine.h"

namespace braid {
namespace {

// What one rank computed, by place, in the order of computation.
struct Trace {
  std::vector<std::string> places;
  std::map<std::string, Tensor> tokens;

  void add(const std::string& where, const Tensor& x) {
    places.push_back(where);
    tokens[where] = x.to(at::kCPU, at::kFloat);
  }
};

struct Model {
  FluxConfig config;
  LatentShape latents;
  int text_tokens;
  at::ScalarType dtype;
};

// Inputs that every rank draws alike: normal values, a timestep in the middle.
DenoiserInput inputs_of(const Model& m, std::uint64_t seed, at::Device device) {
  const auto normal = [&, generator = generator_of(seed)](at::IntArrayRef shape) {
    return at::randn(shape, generator, at::kFloat).to(m.dtype).to(device);
  };
  const auto on_device = at::TensorOptions(at::kFloat).device(device);
  DenoiserInput in{.image_BIC = normal({1, m.latents.num_tokens(), m.config.in_channels}),
                   .image_ids_IA = position_ids(m.latents, device),
                   .text_BTC = normal({1, m.text_tokens, m.config.text_width}),
                   .text_ids_TA = at::zeros({m.text_tokens, 3}, on_device),
                   .pooled_BC = normal({1, m.config.pooled_width}),
                   .timestep_B = at::full({1}, 0.5, on_device).to(m.dtype)};
  if (m.config.guidance_embeds) in.guidance_B = at::full({1}, 3.5, on_device);
  return in;
}

Trace trace_of(const VerifyOptions& options, const Model& model, const Mesh& mesh,
               const std::vector<at::Device>& devices, std::optional<Fault> fault) {
  const auto device = devices[std::size_t(mesh.world.rank())];
  const c10::DeviceGuard on(device);
  auto checkpoint = find_model(options.pipeline).open_transformer();
  auto names = flux_names(checkpoint);
  const auto& layout = options.pipeline.layout;
  const auto plan = with_fault(
      flux_plan(model.config, mesh.tp.size(),
                layout.shard_modulation ? SharedModulation::kYes : SharedModulation::kNo),
      fault);
  const auto form = layout.gather_keys ? RingForm::kGather : RingForm::kShift;
  const Flux flux(
      model.config,
      Weights(std::move(checkpoint), std::move(names),
              {.dtype = model.dtype, .device = device, .tensor_parallel = mesh.tp}, plan),
      with_fault(attend_over(mesh, form), mesh, fault),
      run_of_rank(model.config, mesh, device,
                  int(std::count(devices.begin(), devices.end(), device))));
  Trace trace;
  const auto part = [&](DenoiserInput in, const Tensor& state) {
    in = with_fault(std::move(in), mesh, fault);
    in.watch = [&](const std::string& where, const Tensor& x) { trace.add(where, x); };
    return flux.advance(in, state);
  };
  const auto predict = split_tokens(mesh.context, layer_split(mesh.stages, part));
  trace.add("velocity", predict({inputs_of(model, options.seed, device)}).front());
  return trace;
}

// How far `mine` is from this rank's tokens of `whole`.
double difference_of(const Tensor& mine, const Tensor& whole, const Group& context) {
  const bool is_whole = mine.size(1) == whole.size(1);
  const auto want = is_whole ? whole : take_share(whole, 1, context);
  if (want.numel() == 0) return 0;
  const auto difference = (mine - want).abs().max() / whole.abs().max();
  const auto value = difference.item<double>();
  return std::isfinite(value) ? value : INFINITY;
}

// [places], float64; -1 where another stage has the place.
Tensor differences_of(const Trace& mine, const Trace& whole, const Group& context) {
  std::vector<double> differences;
  for (const auto& where : whole.places) {
    const auto here = mine.tokens.find(where);
    differences.push_back(here == mine.tokens.end()
                              ? -1
                              : difference_of(here->second, whole.tokens.at(where), context));
  }
  return at::tensor(differences, at::kDouble);
}

// Of each place the rank that differs most. Collective.
std::vector<VerifiedBlock> worst_of(const Group& world, const Tensor& differences,
                                    const std::vector<std::string>& places) {
  world.await();  // ranks reach this at different times
  const auto [worst, rank] = world.all_gather(differences.unsqueeze(0), 0).max(0);
  std::vector<VerifiedBlock> blocks;
  for (std::int64_t i = 0; i < std::int64_t(places.size()); ++i)
    blocks.push_back({.where = places[std::size_t(i)],
                      .difference = worst[i].item<double>(),
                      .rank = rank[i].item<int>()});
  return blocks;
}

Model model_of(const VerifyOptions& o, at::Device device) {
  const auto files = find_model(o.pipeline);
  const auto checkpoint = files.open_transformer();
  const auto config = read_transformer_config(files, checkpoint);
  const auto defaults = read_defaults(files, config.guidance_embeds);
  const auto pick = [](int asked, int otherwise) { return asked > 0 ? asked : otherwise; };
  return {.config = config,
          .latents = {.channels = config.in_channels / 4,
                      .height = pick(o.height, defaults.height) / 16 * 2,
                      .width = pick(o.width, defaults.width) / 16 * 2},
          .text_tokens = pick(o.max_sequence_length, defaults.max_sequence_length),
          .dtype = choose_dtype(o.pipeline.dtype, checkpoint.dtype(), device)};
}

}  // namespace

const VerifiedBlock* Verdict::first_divergent() const {
  const auto it = std::find_if(blocks.begin(), blocks.end(),
                               [&](const VerifiedBlock& b) { return b.difference > tolerance; });
  return it == blocks.end() ? nullptr : &*it;
}

Verdict verify(const VerifyOptions& options) {
  const auto degrees = degrees_of(options.pipeline.layout);
  const auto ranks = make_world(options.pipeline.layout);
  const auto devices = devices_of(options.pipeline, degrees);
  const auto model = model_of(options, devices.front());
  Trace whole;
  run_ranks({}, [&](const Group& one) {
    whole = trace_of(options, model, make_mesh(one, {}), {devices.front()}, {});
  });

  const double exact = model.dtype == at::kFloat ? 1e-4 : 0.05;
  Verdict verdict{
      .blocks = {}, .tolerance = options.tolerance.value_or(exact), .num_ranks = ranks->size()};
  std::mutex mutex;
  ranks->run([&](const Group& world) {
    const auto mesh = make_mesh(world, degrees);
    const auto mine = trace_of(options, model, mesh, devices, options.fault);
    auto blocks = worst_of(world, differences_of(mine, whole, mesh.context), whole.places);
    const std::scoped_lock lock(mutex);
    verdict.blocks = std::move(blocks);  // the same on every rank
  });
  return verdict;
}

}  // namespace braid
