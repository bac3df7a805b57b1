#include "pipeline/loaded/denoisers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "parallel/layout.h"
#include "parallel/pipeline_parallel.h"
#include "pipeline/devices/devices.h"
#include "pipeline/planner/tensors.h"

namespace braid {
namespace {

Controls load_controls(const Loading& loading) {
  auto load = loading.options;
  load.tensor_parallel = loading.mesh.tp;
  const auto weights = [&](const Part& part) {
    load.paging = loading.offloaded->control();  // its own for each ControlNet
    return loading.weights->of(part, part.quantized(load, loading.asked().memory));
  };
  return loading.family().load_controls(
      weights, attend_over(loading.mesh, loading.asked().layout.ring_form));
}

Loading loading_of_denoisers(const Loading& loading) {
  auto own = loading;
  own.options.tensor_parallel = loading.mesh.tp;
  own.options.paging = loading.offloaded->transformer();
  return own;
}

// A denoiser of one branch does not share branches out: all of its ranks evaluate what they get.
Loading loading_of(const Part& part, Loading loading) {
  if (part.serves.branches != Served::BranchSet::kAll) loading.mesh.cfg = Group();
  loading.options = part.quantized(std::move(loading.options), loading.asked().memory);
  return loading;
}

}  // namespace

BlockRange blocks_of_rank(const Family& family, const Mesh& mesh, at::Device device,
                          int ranks_on_device) {
  const auto range = blocks_of_rank(mesh, block_parameters(family),
                                    [&] { return free_memory(device, ranks_on_device); });
  return {.begin = range.begin, .count = range.count};
}

Denoisers::Denoisers(const Loading& loading)
    : family_(loading.deployment.family),
      cfg_(loading.mesh.cfg),
      controls_(load_controls(loading)) {
  const auto sharers =
      sharers_of(loading.deployment.devices, std::size_t(loading.mesh.world.rank()));
  const auto range = blocks_of_rank(*family_, loading.mesh, loading.device(), sharers);
  const auto of_denoisers = loading_of_denoisers(loading);
  for (const auto* const part : family_->denoisers())
    list_.push_back({.part = *part,
                     .denoiser = std::make_unique<const Denoiser>(loading_of(*part, of_denoisers),
                                                                  *part, range, controls_)});
  loading.offloaded->finish();
}

void Denoisers::keep_references(const DenoiserInput& references) const {
  for (const auto& entry : list_) entry.denoiser->references().keep(references);
}

void Denoisers::forget_references() const {
  for (const auto& entry : list_) entry.denoiser->references().forget();
}

bool Denoisers::has_cache() const {
  return std::ranges::any_of(list_, [](const Entry& e) { return e.denoiser->cache() != nullptr; });
}

void Denoisers::end_pictures() const {
  for (const auto& entry : list_) entry.denoiser->end_pictures();
}

std::vector<int> Denoisers::full_steps(int picture) const {
  std::set<int> steps;
  for (const auto& entry : list_) {
    const auto* const cache = entry.denoiser->cache();
    if (!cache || !cache->has_seen(picture)) continue;
    const auto& own = cache->full_steps(picture);
    steps.insert(own.begin(), own.end());
  }
  return {steps.begin(), steps.end()};
}

std::vector<std::vector<int>> full_steps_of_round(const Denoisers& denoisers, const Mesh& mesh,
                                                  int count, int evaluations) {
  std::vector<std::vector<int>> all;
  if (!denoisers.has_cache()) return all;
  auto is_full = at::zeros({count, evaluations}, at::kLong);  // a row per picture
  for (int i = 0; i < count; ++i)
    for (const int step : denoisers.full_steps(i)) is_full[i][step] = 1;
  for (const auto& row : gather_pictures(mesh, is_full).unbind()) {
    const auto steps = row.nonzero().flatten();
    all.emplace_back(steps.data_ptr<std::int64_t>(),
                     steps.data_ptr<std::int64_t>() + steps.numel());
  }
  return all;
}

GraphUse Denoisers::graph_use() const {
  GraphUse all;
  for (const auto& entry : list_) {
    const auto use = entry.denoiser->graph_use();
    all.replays += use.replays;
    if (all.why_not.empty()) all.why_not = use.why_not;
    if (all.failure.empty()) all.failure = use.failure;
  }
  return all;
}

void Denoisers::forget_graphs() const {
  for (const auto& entry : list_) entry.denoiser->forget_graphs();
}

std::vector<Tensor> Denoisers::predict_one_by_one(
    const std::vector<DenoiserInput>& branches) const {
  std::vector<Tensor> velocities;
  for (const auto& branch : branches)
    velocities.push_back(list_[serving(branch.step)].denoiser->predict({branch}).front());
  return velocities;
}

std::vector<Tensor> Denoisers::predict(const std::vector<DenoiserInput>& branches) const {
  const auto& first = list_[serving(branches.front().step)];
  if (first.part.serves.branches == Served::BranchSet::kAll)
    return first.denoiser->predict(branches);
  return split_cfg(cfg_, std::bind_front(&Denoisers::predict_one_by_one, this))(branches);
}

}  // namespace braid
