#include "pipeline/proofs/probe.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "pipeline/planner/pictures.h"
#include "pipeline/request/check_pictures.h"
#include "pipeline/request/settings.h"
#include "pipeline/sampling/noise.h"

namespace braid {
namespace {

constexpr double kGuidance = 3.5;
constexpr std::uint64_t kBranchSeeds = 1'000'003;

std::optional<int> if_given(int number) {
  return number > 0 ? std::optional(number) : std::nullopt;
}

// The request whose evaluations are probed.
Request request_of(const ProbeOptions& o, const RequestLimits& limits) {
  return {
      .prompts = {""},
      .width = if_given(o.width),
      .height = if_given(o.height),
      .layers = o.layers,
      .max_sequence_length = if_given(o.max_sequence_length).value_or(limits.usual_text_tokens()),
      .pictures = o.pictures};
}

std::function<Tensor(at::IntArrayRef)> normal_values(const Probe& p, std::uint64_t seed,
                                                     at::Device device) {
  return [&p, device, generator = generator_of(seed)](at::IntArrayRef sizes) {
    return at::randn(sizes, generator, at::kFloat).to(p.dtype).to(device);
  };
}

// A control's tokens are as wide as those of the latents, or wider by a mask: one more channel
// before packing.
std::vector<std::int64_t> sizes_followed(const Probe& p, const Tensor& latents_BNC) {
  auto sizes = latents_BNC.sizes().vec();
  const auto& taken = p.family->description().limits.pictures;
  if (taken.nets_follow == PicturesTaken::NetsFollow::kMasked)
    sizes.back() += sizes.back() / p.family->latent_shape(p.size).front();
  return sizes;
}

}  // namespace

Probe probe_of(const ProbeOptions& o, const Deployment& d) {
  const auto& limits = d.family->description().limits;
  const auto& taken = limits.pictures;
  const auto request = request_of(o, limits);
  check_frames(request, limits);
  if (!o.pictures.is_empty()) check_pictures({.pictures = o.pictures}, taken);
  check_size(request, limits);
  Probe probe{.family = d.family,
              .size = drawn_size(request, limits),
              .text_tokens = *request.max_sequence_length,
              .dtype = d.dtype};
  probe.references = reference_sizes(o.pictures, taken, probe.size);
  probe.text_tokens += int(text_of_pictures(o.pictures, taken, probe.size).seen);
  probe.reference_use = taken.use_with(o.pictures.reference_cache);
  if (d.family->keeps_prefix(o.pictures.reference_cache)) probe.prefix = Prefix::kKept;
  probe.request = request;
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

std::vector<StepInfo> steps_of(const Family& family) {
  std::vector<double> levels;
  for (const auto* const part : family.denoisers()) {
    const auto level = part->serves.middle();
    if (std::find(levels.begin(), levels.end(), level) == levels.end()) levels.push_back(level);
  }
  const auto all = double(family.description().schedule.num_train_timesteps);
  std::vector<StepInfo> steps;
  for (const auto level : levels)
    steps.push_back({.number = int(steps.size()), .timestep = static_cast<float>(level * all)});
  return steps;
}

int num_branches_of(const Deployment& deployment) {
  const auto denoisers = deployment.family->denoisers();
  const bool serve_all = std::ranges::all_of(
      denoisers, [](const Part* part) { return part->serves.branches == Served::BranchSet::kAll; });
  return std::max(deployment.degrees().cfg, serve_all ? 1 : 2);
}

DenoiserInput inputs_of(const Probe& p, std::uint64_t seed, at::Device device,
                        const StepInfo& step) {
  const auto& shape = p.family->shape();
  const auto normal = normal_values(p, seed, device);
  const auto latents = normal({1, p.family->num_tokens(p.size), shape.in_width});
  const auto of_text =
      step.branch == 0 ? normal
                       : normal_values(p, seed + kBranchSeeds * std::uint64_t(step.branch), device);
  Condition condition{.text_BTC = of_text({1, p.text_tokens, shape.text_width}), .pooled_BC = {}};
  if (shape.pooled_width > 0) condition.pooled_BC = of_text({1, shape.pooled_width});
  auto in =
      p.family->begin(condition, p.size, kGuidance, at::TensorOptions(p.dtype).device(device));
  if (shape.extra_width > 0) in.extra_BLC = normal({1, latents.size(1), shape.extra_width});
  if (!p.keeps_references()) in.references = references_of(p, seed, device);
  const auto& taken = p.family->description().limits.pictures;
  for (const int modes : taken.controlnet_modes) {
    const int net = int(in.controls.size());
    const auto mode = modes > 0 ? std::optional(0) : std::nullopt;
    auto& control = in.controls.emplace_back(p.family->control(in, net, mode, kGuidance));
    control.net = net;
    control.x_BNC = normal(sizes_followed(p, latents));
    control.scale = at::ones({}, at::TensorOptions(at::kFloat).device(device));
  }
  p.family->arrange(in);
  p.family->set_step(in, latents, step.timestep);
  in.step = step;
  return in;
}

std::vector<DenoiserInput> branches_of(const Probe& probe, std::uint64_t seed, at::Device device,
                                       StepInfo step, int num_branches) {
  std::vector<DenoiserInput> branches;
  for (step.branch = 0; step.branch < num_branches; ++step.branch)
    branches.push_back(inputs_of(probe, seed, device, step));
  return branches;
}

std::unique_ptr<const Denoisers> denoisers_of(const Mesh& mesh, const Deployment& deployment,
                                              const Interposed& interposed) {
  auto loading = loading_on(mesh, deployment);
  loading.interposed = interposed;
  return std::make_unique<const Denoisers>(loading);
}

void modulate_controls(std::vector<DenoiserInput>& branches, const Controls& controls) {
  for (std::size_t i = 0; controls.modulate && i < branches.front().controls.size(); ++i) {
    const auto made = controls.modulate({branches.front()}, i).front();
    for (auto& branch : branches) branch.controls[i].modulations_BM = made;
  }
}

}  // namespace braid
