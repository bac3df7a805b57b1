#include "pipeline/dry/dry_run.h"

#include <ATen/ATen.h>

#include <set>

#include "comm/thread.h"
#include "models/vae/model.h"
#include "pipeline/dry/dry_device.h"
#include "pipeline/dry/meta_memory.h"
#include "pipeline/engine/denoise.h"
#include "pipeline/files/part_tensors.h"
#include "pipeline/loaded/once_per_picture.h"

namespace braid {
namespace {

// Steps before the counted one: pages learn their order in the first.
constexpr std::size_t kStepsBefore = 2;

Tensor empty(at::IntArrayRef sizes, at::ScalarType dtype) {
  return at::empty(sizes, at::TensorOptions(dtype).device(at::kMeta));
}

// The parts of a model that one rank holds.
class DryModel {
 public:
  DryModel(const PlanJob& job, const Mesh& mesh, const ModelFiles* files, const DryMeter& meter);

  const Denoisers& denoisers() const { return *denoisers_; }
  const DryPageDevice& device() const { return *device_; }
  DryRank held() const;

 private:
  Weights weights_of(const Part& part, const LoadOptions& load);
  void load_decoder();
  void load_text();
  void load_denoisers();
  LoadOptions load_options();

  const PlanJob& job_;
  const Mesh& mesh_;
  Deployment deployment_;
  const ModelFiles* files_;
  std::shared_ptr<DryPageDevice> device_ = std::make_shared<DryPageDevice>();
  std::shared_ptr<OffloadedParts> offloaded_;
  std::set<std::shared_ptr<Pages>> pages_;
  std::optional<Vae> decoder_;
  std::unique_ptr<const TextEncoders> text_;
  std::unique_ptr<const Denoisers> denoisers_;
  std::int64_t read_ = 0, of_dropped_parts_ = 0, loaded_ = 0;
};

// What a rank would be given, with every rank on the meta device.
Deployment deployment_of(const PlanJob& job, const Mesh& mesh, const ModelFiles* files) {
  Deployment deployment{
      .options = {.model = {}, .graphs = Graphs::kOff, .layout = job.layout, .memory = job.memory},
      .files = files ? std::make_shared<const ModelFiles>(*files) : nullptr,
      .family = job.family,
      .places = {.grid = mesh.degrees, .devices = {}},
      .devices = {},
      .dtype = job.dtype,
      .stated = {}};
  deployment.devices.assign(std::size_t(mesh.world.size()), at::kMeta);
  return deployment;
}

// Loads in the order of Model's constructor.
DryModel::DryModel(const PlanJob& job, const Mesh& mesh, const ModelFiles* files,
                   const DryMeter& meter)
    : job_(job),
      mesh_(mesh),
      deployment_(deployment_of(job, mesh, files)),
      files_(files),
      offloaded_(std::make_shared<OffloadedParts>(job.memory.offload, at::kMeta, device_)) {
  if (mesh.world.rank() == 0 || job.layout.decode == DecodeRanks::kAll) load_decoder();
  load_text();
  load_denoisers();
  loaded_ = meter.live();
}

LoadOptions DryModel::load_options() {
  return {.dtype = job_.dtype,
          .device = at::kMeta,
          .on_read = [this](const BytesRead& read) { read_ += read.all; },
          .stored_codes = StoredCodes::kKept};
}

Weights DryModel::weights_of(const Part& part, const LoadOptions& load) {
  if (load.paging.pages) pages_.insert(load.paging.pages);
  auto tensors = source_of_part(*job_.family, part, files_, {}).tensors;
  return {std::move(tensors), load,
          part.sharding ? part.sharding(job_.layout.modulation) : ShardingTable()};
}

void DryModel::load_decoder() {
  auto load = load_options();
  load.paging = offloaded_->vae();
  decoder_.emplace(job_.family->description().vae,
                   weights_of(job_.family->part(Part::Role::kDecoder), load), Vae::Parts::kDecoder);
}

// Named models have no tokenizers: their encoders are built, counted and dropped.
void DryModel::load_text() {
  auto load = load_options();
  if (job_.layout.text == TextRanks::kShared) load.tensor_parallel = mesh_.tp;
  const int sharers = load.tensor_parallel.size();
  if (mesh_.world.rank() >= sharers) return;
  load.paging = offloaded_->text();
  const auto weights = [&](const Part& part) {
    auto own = load;
    if (part.is_large) own.quantize = job_.memory.quantize_text;
    return weights_of(part, own);
  };
  if (files_) {
    text_ = job_.family->load_text(files_->folder, at::kMeta, weights, {});
    return;
  }
  for (const auto* const part : job_.family->text_parts()) {
    DryMeter meter;
    const DryMeter::Here here(meter);
    part->make(weights(*part));
    of_dropped_parts_ += meter.peak();
  }
}

void DryModel::load_denoisers() {
  const auto around = [this](std::shared_ptr<TensorSource> tensors, const LoadOptions& load) {
    if (load.paging.pages) pages_.insert(load.paging.pages);
    return tensors;
  };
  const Loading loading{
      .deployment = deployment_,
      .mesh = mesh_,
      .weights = std::make_shared<ModelWeights>(deployment_, at::kMeta, Warn(), around),
      .offloaded = offloaded_,
      .options = load_options()};
  denoisers_ = std::make_unique<const Denoisers>(loading);
}

DryRank DryModel::held() const {
  DryRank rank{.weights = loaded_ + of_dropped_parts_,
               .slots = device_->slot_bytes(),
               .placed = device_->placed_bytes(),
               .read = read_};
  for (const auto& pages : pages_) rank.pages += pages->page_bytes();
  return rank;
}

// Families arrange tokens by numbers, so that inputs begin on the host.
Tensor on_host(at::IntArrayRef sizes, at::ScalarType dtype) { return at::zeros(sizes, dtype); }

std::vector<Tokens> references_of(const PlanJob& job, std::int64_t batch, std::int64_t axes) {
  std::vector<Tokens> references;
  for (const auto tokens : job.pictures.references)
    references.push_back({.x_BLC = on_host({batch, tokens, job.shape().in_width}, job.dtype),
                          .ids_LA = on_host({tokens, axes}, at::kFloat)});
  return references;
}

DenoiserInput begun_on_host(const PlanJob& job) {
  const auto& shape = job.shape();
  const auto batch = std::int64_t(job.batch_size);
  const auto text = job.text_tokens + job.pictures.tokens_behind_prompt;
  Condition condition{.text_BTC = on_host({batch, text, shape.text_width}, job.dtype),
                      .pooled_BC = {}};
  if (shape.pooled_width > 0) condition.pooled_BC = on_host({batch, shape.pooled_width}, job.dtype);
  auto in =
      job.family->begin(condition, job.size(), /*guidance=*/3.5, at::TensorOptions(job.dtype));
  const auto tokens = job.family->num_tokens(job.size());
  if (shape.extra_width > 0) in.extra_BLC = on_host({batch, tokens, shape.extra_width}, job.dtype);
  if (job.pictures.reference_use == PicturesTaken::ReferenceUse::kInEveryStep)
    in.references = references_of(job, batch, in.noise.ids_LA.size(1));
  job.family->arrange(in);
  return in;
}

DenoiserInput begun_input(const PlanJob& job) {
  auto in = begun_on_host(job);
  visit_tensors(in, [](Tensor& x, const DimRoles&) { x = x.to(at::kMeta); });
  return in;
}

DenoiseJob begun_job(const PlanJob& job, const Mesh& mesh) {
  const auto tokens = job.family->num_tokens(job.size());
  DenoiseJob begun{.latents_BNC = empty({job.batch_size, tokens, job.shape().in_width},
                                        job.family->latents_dtype(job.dtype)),
                   .branches = {},
                   .set_step = std::bind_front(&Family::set_step, job.family.get()),
                   .unguided = mesh.cfg.size() > 1 ? DenoiseJob::Unguided::kAllBranches
                                                   : DenoiseJob::Unguided::kOneBranch};
  for (int branch = 0; branch < job.branches; ++branch) begun.branches.push_back(begun_input(job));
  return begun;
}

void see_references_once(const PlanJob& job, const Denoisers& denoisers) {
  const bool is_once = job.pictures.reference_use == PicturesTaken::ReferenceUse::kOnce;
  if (!is_once || job.pictures.references.empty()) return;
  const auto axes = begun_on_host(job).noise.ids_LA.size(1);
  auto alone = job.family->references_alone(references_of(job, 1, axes));
  visit_tensors(alone, [](Tensor& x, const DimRoles&) { x = x.to(at::kMeta); });
  denoisers.keep_references(alone);
}

// Does what generate_pictures() does after the prompts.
void draw(const PlanJob& job, const Mesh& mesh, const DryModel& model, DryMeter& meter,
          DryRank& rank) {
  const auto& denoisers = model.denoisers();
  auto begun = begun_job(job, mesh);
  const auto at_first = meter.live();
  meter.peak_from_here();
  see_references_once(job, denoisers);
  rank.kept = meter.live() - at_first;
  auto schedule = job.family->schedule(job.steps, job.size(), StartsFrom::kNoise);
  const auto evaluations = branches_of_evaluations(begun, schedule);
  const auto at_prefix = meter.live();
  const OncePerPicture once(denoisers, evaluations,
                            job.keeps_prefix() ? Prefix::kKept : Prefix::kInEveryStep);
  rank.modulations = once.bytes().modulations;
  rank.ropes = once.bytes().ropes;
  rank.kept += job.keeps_prefix() ? meter.live() - at_prefix - rank.modulations - rank.ropes
                                  : once.bytes().text;
  modulate_controls(begun, evaluations, denoisers.controls());
  rank.beginning = meter.peak() - at_first;

  schedule.timesteps.resize(kStepsBefore + 1);
  schedule.sigmas.resize(kStepsBefore + 2);
  const auto before = meter.live();
  auto traffic = traffic_of(mesh);
  std::int64_t copied = 0, flops = 0;
  const auto on_step = [&](const StepTaken& taken) {
    rank.traffic = traffic_between(traffic, traffic_of(mesh));
    rank.copied = model.device().copied_bytes() - copied;
    rank.flops = meter.flops() - flops;
    if (taken.done > int(kStepsBefore)) return;
    traffic = traffic_of(mesh);
    copied = model.device().copied_bytes();
    flops = meter.flops();
    meter.peak_from_here();
  };
  denoise(std::bind_front(&OncePerPicture::predict, &once), job.family->description().schedule,
          schedule, std::move(begun), on_step);
  rank.working = meter.peak() - before;
}

DryRank run_rank(const PlanJob& job, const Group& world, const Degrees& grid,
                 const ModelFiles* files) {
  DryMeter meter;
  const DryMeter::Here here(meter);
  const auto mesh = make_mesh(world, grid);
  const DryModel model(job, mesh, files, meter);
  auto rank = model.held();
  draw(job, mesh, model, meter, rank);
  return rank;
}

}  // namespace

std::vector<DryRank> dry_run(const PlanJob& job, const Degrees& grid, const ModelFiles* files) {
  std::vector<DryRank> ranks(std::size_t(grid.product()));
  run_ranks({.size = grid.product()}, [&](const Group& world) {
    ranks[std::size_t(world.rank())] = run_rank(job, world, grid, files);
  });
  return ranks;
}

}  // namespace braid
