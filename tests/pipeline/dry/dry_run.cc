#include "pipeline/dry/dry_run.h"

#include <ATen/ATen.h>

#include <set>

#include "comm/thread.h"
#include "pipeline/denoisers/denoisers.h"
#include "pipeline/dry/dry_device.h"
#include "pipeline/dry/dry_tensors.h"
#include "pipeline/dry/meta_memory.h"
#include "pipeline/part_tensors.h"
#include "pipeline/sampling/denoise.h"

namespace braid {
namespace {

// Steps before the counted one: pages learn their order in the first.
constexpr std::size_t kStepsBefore = 2;

Tensor empty(at::IntArrayRef sizes, at::ScalarType dtype) {
  return at::empty(sizes, at::TensorOptions(dtype).device(at::kMeta));
}

struct Loaded {
  std::shared_ptr<DryPageDevice> device = std::make_shared<DryPageDevice>();
  std::set<std::shared_ptr<Pages>> pages = {};
  std::unique_ptr<const Denoisers> denoisers = {};
};

Loaded load(const PlanJob& job, const Mesh& mesh) {
  Loaded loaded;
  const ModelOptions options{.device = at::kMeta,
                             .layout = job.layout,
                             .memory = job.memory,
                             .graphs = Graphs::kOff};
  const auto weights = [&](const Part& part, const LoadOptions& load) {
    if (load.paging.pages) loaded.pages.insert(load.paging.pages);
    auto source = source_of_part(*job.family, part, nullptr, {});
    return Weights(dry_tensors(std::move(source.tensors)), load,
                   part.sharding({.ranks = mesh.tp.size(), .modulation = job.layout.modulation}));
  };
  loaded.denoisers = std::make_unique<const Denoisers>(DenoiserSetup{
      .family = *job.family,
      .mesh = mesh,
      .options = options,
      .load = {.dtype = job.dtype, .device = at::kMeta, .coded = Coded::kKept},
      .weights = weights,
      .offloaded =
          std::make_shared<OffloadedParts>(job.memory.offload, at::kMeta, loaded.device)});
  return loaded;
}

std::vector<Tokens> references_of(const PlanJob& job, std::int64_t batch, std::int64_t axes) {
  std::vector<Tokens> references;
  for (const auto tokens : job.pictures.references)
    references.push_back({.x_BLC = empty({batch, tokens, job.shape().in_width}, job.dtype),
                          .ids_LA = empty({tokens, axes}, at::kFloat)});
  return references;
}

DenoiserInput begun_input(const PlanJob& job) {
  const auto& shape = job.shape();
  const auto batch = std::int64_t(job.batch_size);
  const auto text = job.text_tokens + job.pictures.tokens_behind_prompt;
  Condition condition{.text_BTC = empty({batch, text, shape.text_width}, job.dtype),
                      .pooled_BC = {}};
  if (shape.pooled_width > 0) condition.pooled_BC = empty({batch, shape.pooled_width}, job.dtype);
  auto in = job.family->begin(condition, job.size(), /*guidance=*/3.5,
                              at::TensorOptions(job.dtype).device(at::kMeta));
  const auto tokens = job.family->num_tokens(job.size());
  if (shape.beside_width > 0) in.beside_BLC = empty({batch, tokens, shape.beside_width}, job.dtype);
  if (job.pictures.seen == PicturesTaken::Seen::kInEveryStep)
    in.references = references_of(job, batch, in.noise.ids_LA.size(1));
  return in;
}

DenoiseJob begun_job(const PlanJob& job, const Mesh& mesh) {
  const auto tokens = job.family->num_tokens(job.size());
  DenoiseJob begun{
      .latents_BNC = empty({job.batch_size, tokens, job.shape().in_width},
                           job.family->latents_dtype(job.dtype)),
      .branches = {},
      .set_step = std::bind_front(&Family::set_step, job.family.get()),
      .unguided = mesh.cfg.size() > 1 ? DenoiseJob::Unguided::kAllBranches
                                      : DenoiseJob::Unguided::kOneBranch};
  for (int branch = 0; branch < job.branches; ++branch) begun.branches.push_back(begun_input(job));
  return begun;
}

void see_references_once(const PlanJob& job, const Denoisers& denoisers) {
  const bool is_once = job.pictures.seen == PicturesTaken::Seen::kOnce;
  if (!is_once || job.pictures.references.empty()) return;
  const auto axes = begun_input(job).noise.ids_LA.size(1);
  denoisers.keep_references(job.family->references_alone(references_of(job, 1, axes)));
}

std::int64_t bytes_of(const std::vector<Tensor>& tensors) {
  std::int64_t sum = 0;
  for (const auto& tensor : tensors) sum += std::int64_t(tensor.nbytes());
  return sum;
}

// As generate_pictures() does after the prompts.
void draw(const PlanJob& job, const Mesh& mesh, const Loaded& loaded, DryMeter& meter,
          DryRank& rank) {
  const auto& denoisers = *loaded.denoisers;
  auto begun = begun_job(job, mesh);
  const auto at_first = meter.live();
  see_references_once(job, denoisers);
  rank.kept = meter.live() - at_first;
  auto schedule = job.family->schedule(job.steps, job.size(), /*from_noise=*/true);
  modulate_steps(begun, schedule, denoisers.front().modulate(), denoisers.controls());
  refine_text(begun, schedule, denoisers.front().refine());
  rank.modulations = bytes_of(begun.modulations_SBM);
  for (const auto& branch : begun.branches)
    if (branch.refined_BTC.defined()) rank.kept += std::int64_t(branch.refined_BTC.nbytes());

  schedule.timesteps.resize(kStepsBefore + 1);
  schedule.sigmas.resize(kStepsBefore + 2);
  const auto before = meter.live();
  TrafficByAxis traffic;
  std::int64_t copied = 0, flops = 0;
  const auto on_step = [&](const StepTaken& taken) {
    rank.traffic = traffic_between(traffic, traffic_of(mesh));
    rank.copied = loaded.device->copied_bytes() - copied;
    rank.flops = meter.flops() - flops;
    if (taken.done > int(kStepsBefore)) return;
    traffic = traffic_of(mesh);
    copied = loaded.device->copied_bytes();
    flops = meter.flops();
    meter.peak_from_here();
  };
  denoise(std::bind_front(&Denoisers::predict, &denoisers), job.family->description().schedule,
          schedule, std::move(begun), on_step);
  rank.working = meter.peak() - before;
}

DryRank run_rank(const PlanJob& job, const Group& world, const Degrees& grid) {
  DryMeter meter;
  const DryMeter::Here here(meter);
  const auto mesh = make_mesh(world, grid);
  const auto loaded = load(job, mesh);
  DryRank rank{.weights = meter.live(),
               .slots = loaded.device->slot_bytes(),
               .placed = loaded.device->placed_bytes()};
  for (const auto& pages : loaded.pages) rank.pages += pages->page_bytes();
  draw(job, mesh, loaded, meter, rank);
  return rank;
}

}  // namespace

std::vector<DryRank> dry_run(const PlanJob& job, const Degrees& grid) {
  std::vector<DryRank> ranks(std::size_t(grid.product()));
  run_ranks({.size = grid.product()}, [&](const Group& world) {
    ranks[std::size_t(world.rank())] = run_rank(job, world, grid);
  });
  return ranks;
}

}  // namespace braid
