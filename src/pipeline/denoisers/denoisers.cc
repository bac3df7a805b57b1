#include "pipeline/denoisers/denoisers.h"

#include "parallel/layout.h"
#include "pipeline/devices.h"
#include "pipeline/planner/tensors.h"

namespace braid {
namespace {

Controls load_controls(const DenoiserSetup& setup) {
  auto load = setup.load;
  load.tensor_parallel = setup.mesh.tp;
  load.quantize = setup.options.memory.quantize;
  const auto weights = [&](const Part& part) {
    load.paging = setup.offloaded->control();
    return setup.weights(part, load);
  };
  return setup.family.load_controls(weights,
                                    attend_over(setup.mesh, setup.options.layout.ring_form));
}

}  // namespace

BlockRange blocks_of_rank(const Family& family, const Mesh& mesh, at::Device device,
                          int ranks_on_device) {
  const auto run = blocks_of_rank(mesh, block_parameters(family),
                                  [&] { return free_memory(device, ranks_on_device); });
  return {.begin = run.begin, .count = run.count};
}

Denoisers::Denoisers(const DenoiserSetup& setup) : controls_(load_controls(setup)) {
  const auto run =
      blocks_of_rank(setup.family, setup.mesh, setup.options.device, setup.options.ranks_on_device);
  for (const auto* const part : setup.family.parts(Part::Role::kDenoiser))
    list_.push_back(std::make_unique<const Denoiser>(setup, *part, run, controls_));
  setup.offloaded->finish();
}

void Denoisers::keep_references(const DenoiserInput& references) const {
  for (const auto& one : list_) one->references().keep(references);
}

void Denoisers::keep_prefixes(const std::vector<DenoiserInput>& branches) const {
  for (const auto& one : list_) one->references().keep_prefixes(branches);
}

void Denoisers::forget_references() const {
  for (const auto& one : list_) one->references().forget();
}

KeptPrefixes::KeptPrefixes(const Denoisers& denoisers, std::vector<DenoiserInput>& branches)
    : denoisers_(denoisers) {
  denoisers.keep_prefixes(branches);
  for (auto& branch : branches) branch = behind_prefix(branch);
}

GraphUse Denoisers::graph_use() const {
  GraphUse all{.why_not = front().graph_use().why_not};
  for (const auto& one : list_) {
    const auto use = one->graph_use();
    all.replays += use.replays;
    if (all.failure.empty()) all.failure = use.failure;
  }
  return all;
}

void Denoisers::forget_graphs() const {
  for (const auto& one : list_) one->forget_graphs();
}

std::vector<Tensor> Denoisers::predict(const std::vector<DenoiserInput>& branches) const {
  return front().predict(branches);
}

}  // namespace braid
