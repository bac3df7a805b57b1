#include "pipeline/engine.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/loaded_libraries.h"
#include "ops/attention_kernel.h"
#include "pipeline/generate.h"
#include "pipeline/link_speed.h"
#include "pipeline/rank_speeds.h"
#include "pipeline/rank_threads.h"
#include "pipeline/same_run.h"

namespace braid {
namespace {

std::int64_t bytes_of(const Deployment& deployment) {
  std::int64_t bytes = 0;
  for (const auto& part : deployment.family->description().parts)
    bytes += std::int64_t(deployment.files->open(part.folder).num_bytes());
  return bytes;
}

// A request may name the same adapters again: they are then the same files.
Deployment with_adapters_of(AdapterShelf& shelf, Deployment d) {
  require(d.files != nullptr, "a synthetic model has no text encoders: it makes no pictures");
  auto files = std::make_shared<ModelFiles>(*d.files);
  files->adapters = shelf.open(d.options.adapters);
  d.files = std::move(files);
  return d;
}

std::unique_ptr<Model> load(const Deployment& deployment, const Group& world, const Hooks& hooks) {
  world.await();  // a rank may have to wait for its files, or for its device
  const auto mesh = make_mesh(world, deployment.degrees());
  Progress progress{.phase = Phase::kLoad, .done = 0, .total = bytes_of(deployment)};
  const auto on_bytes = [&](std::int64_t bytes) {
    world.poll();
    progress.done += bytes;
    if (hooks.progress && world.rank() == 0) hooks.progress(progress);
  };
  auto model = std::make_unique<Model>(
      deployment, mesh,
      LoadHooks{.on_bytes = on_bytes, .warn = world.rank() == 0 ? hooks.warning : Warn()});
  on_bytes(progress.total - progress.done);  // for other ranks, and what nobody needs
  return model;
}

// Every rank learns what each has read. The first one also loads what only it has, for as long as
// that takes.
std::vector<BytesRead> bytes_read_by(const Model& model) {
  const auto& mine = model.bytes_read();
  model.mesh().world.await();
  const auto all = model.mesh().world.all_gather(
      at::tensor({mine.all, mine.strided}, at::kLong).unsqueeze(0), 0);
  std::vector<BytesRead> ranks;
  for (std::int64_t r = 0; r < all.size(0); ++r)
    ranks.push_back(
        {.all = all[r][0].item<std::int64_t>(), .strided = all[r][1].item<std::int64_t>()});
  return ranks;
}

// Processes start at different times, so that the usual deadline is too short; one that was chosen
// is kept.
std::chrono::milliseconds meeting_of(const Layout& layout) {
  const bool is_usual = layout.deadline == Layout().deadline;
  return is_usual ? std::chrono::minutes(1)
                  : std::chrono::milliseconds(std::int64_t(1000 * layout.deadline));
}

// A refusal is told as any failure of a rank.
void settle_shares_of(World& world, Deployment& deployment) {
  const int threads = threads_per_rank(deployment.options, world.ranks_on_these_cores());
  world.run([&](const Group& group) {
    group.await();
    const auto& host = deployment.until_met->host;
    settle_shares(deployment, speeds_of_processes(group, deployment, threads, host));
  });
}

Degrees unchecked_degrees(const Layout& l) {
  return {.dp = l.dp,
          .cfg = l.cfg,
          .pp = l.pp,
          .ring = l.ring,
          .ulysses = l.ulysses,
          .tp = l.tp,
          .shares = l.shares};
}

}  // namespace

bool has_degrees(const Layout& layout) {
  const auto degrees = unchecked_degrees(layout);
  return std::ranges::any_of(kAxes, [&](const Axis& axis) { return degrees.*axis.degree != 1; });
}

Degrees degrees_of(const Layout& layout) {
  const auto degrees = unchecked_degrees(layout);
  for (const auto& axis : kAxes) {
    const int degree = degrees.*axis.degree;
    require(degree >= 1 && degree <= kMostRanks, "every degree of a layout should lie between 1 ",
            "and ", kMostRanks, ", one is ", degree);
  }
  check_shares(degrees);
  return degrees;
}

WorldOptions world_of(const Layout& layout) {
  require(layout.deadline >= 0 && layout.deadline <= 1e6, "the deadline should lie between 0 and ",
          "1000000 seconds, it is ", layout.deadline);
  const auto degrees = degrees_of(layout);
  const double ranks =
      double(degrees.dp) * degrees.cfg * degrees.pp * degrees.ring * degrees.ulysses * degrees.tp;
  require(ranks <= kMostRanks, to_string(degrees), " are more than ", kMostRanks, " ranks");
  return {.size = int(ranks),
          .product = to_string(degrees),
          .deadline = deadline_of(layout, {}),
          .meeting = meeting_of(layout)};
}

// A GPU loads or compiles what is used first, which takes one rank longer than another.
std::chrono::milliseconds deadline_of(const Layout& layout, const std::vector<at::Device>& ranks) {
  const bool has_gpu =
      std::any_of(ranks.begin(), ranks.end(), [](at::Device device) { return !device.is_cpu(); });
  if (layout.deadline == 0) return std::chrono::seconds(has_gpu ? 60 : 10);
  return std::chrono::milliseconds(std::int64_t(1000 * layout.deadline));
}

std::unique_ptr<World> make_world(Deployment& deployment,
                                  const std::function<void(const std::string&)>& warn) {
  const auto& layout = deployment.options.layout;
  auto requested = world_of(layout);
  requested.warn = warn;
  requested.collectives = layout.collectives;
  const auto launch = layout.ranks == Ranks::kProcesses ? read_launch() : std::nullopt;
  if (!launch || launch->size == requested.size) requested.devices = deployment.devices;
  requested.deadline = deadline_of(layout, requested.devices);
  // LibTorch fills its list of attention kernels when it first chooses, without a lock: ranks that
  // did so at once could take different ones.
  for (std::size_t rank = 0; rank < requested.devices.size(); ++rank)
    if (!requested.devices[rank].is_cpu() && (!launch || launch->rank == int(rank)))
      (void)ops::attention_kernel_on(requested.devices[rank]);
  auto world = make_world(requested, launch);
  if (deployment.until_met) settle_shares_of(*world, deployment);
  return world;
}

Engine::Engine(const PipelineOptions& options, const Hooks& hooks, Measure measure)
    : Engine(deploy(options, hooks.warning), hooks, measure) {}

Engine::Engine(Deployment deployment, const Hooks& hooks, Measure measure)
    : deployment_(with_adapters_of(shelf_, std::move(deployment))),
      world_(make_world(deployment_, hooks.warning)),
      threads_(threads_per_rank(deployment_.options, world_->ranks_on_these_cores())),
      models_(std::size_t(world_->size())),
      meter_(measure == Measure::kPeaks ? std::make_unique<PeakMeter>() : nullptr) {
  const bool has_gpu = std::any_of(deployment_.devices.begin(), deployment_.devices.end(),
                                   [](at::Device device) { return !device.is_cpu(); });
  if (const auto clash = has_gpu ? why_runtimes_clash() : ""; !clash.empty() && hooks.warning)
    hooks.warning(clash);
  world_->on_failed_run([this](int rank) {
    if (auto& model = models_[std::size_t(rank)]) model->forget_graphs();
  });
  PhaseLog phases;
  phases.enter(Phase::kLoad);
  world_->run([&](const Group& world) { load_rank(world, hooks); }, hooks.stop);
  phases.finish();
  loaded_.seconds = phases.seconds(Phase::kLoad);
  loaded_.dtype = model().dtype();
  loaded_.link = world_->link();
}

void Engine::load_rank(const Group& world, const Hooks& hooks) {
  const auto rank = std::size_t(world.rank());
  const auto device = deployment_.devices[rank];
  const c10::DeviceGuard on(device);
  const UseThreads threads(threads_);
  check_same_model(world, deployment_);
  const auto link =
      link_between_ranks(world, deployment_, world_->ranks_on_these_cores(), this_host());
  if (rank == 0) link_speed_ = link;
  if (meter_) {
    meter_->watch(device);
    meter_->enter(Phase::kLoad);
  }
  models_[rank] = load(deployment_, world, hooks);
  auto read = bytes_read_by(*models_[rank]);
  if (rank == 0) loaded_.bytes_read = std::move(read);
  if (meter_) meter_->finish();
}

std::optional<std::string> Engine::link_warning(const Request& request) const {
  if (!link_speed_ || std::exchange(has_judged_link_, true)) return {};
  return slow_link_warning(deployment_, request, *link_speed_, this_host());
}

const Model& Engine::model() const {
  return **std::find_if(models_.begin(), models_.end(), [](const auto& f) { return bool(f); });
}

Settings Engine::settle(const Request& request, const Hooks& hooks) const {
  return braid::settle(deployment_, request, hooks.warning);
}

std::string Engine::share(const std::string& text) const {
  std::string shared;
  const auto bytes_of_text = [](const std::string& t) {
    return at::tensor(
        at::ArrayRef<std::uint8_t>(reinterpret_cast<const std::uint8_t*>(t.data()), t.size()));
  };
  const auto tell = [&](const Group& world) {
    world.await();
    const auto bytes = world.broadcast(bytes_of_text(text), 0);
    if (world.rank() > 0 && world_->has_first_rank()) return;  // the first rank's thread fills it
    const auto* const data = reinterpret_cast<const char*>(bytes.const_data_ptr<std::uint8_t>());
    shared.assign(data, std::size_t(bytes.numel()));
  };
  world_->run(tell);
  return shared;
}

Request Engine::complete(const Request& request, const Hooks& hooks) const {
  const auto settings = settle(request, hooks);
  check_initial_latents(request, settings, model().family());
  return completed(request, settings);
}

ModelInfo Engine::info() const { return info_of(model().family().description()); }

ModelInfo info_of(const Description& description) {
  const auto& limits = description.limits;
  const auto& d = limits.defaults;
  const auto& pictures = limits.pictures;
  const bool takes_init = pictures.init != PicturesTaken::Init::kNever;
  const auto& frames = limits.frames;
  const bool draws_layers = frames.kind == FrameKind::kLayer;
  ModelInfo::Layers layers;
  if (draws_layers) layers = {.drawn = d.frames - 1, .most = frames.most - 1};
  for (const auto& area : pictures.resolutions) layers.resolutions.push_back(int(area.side));
  ModelInfo::Frames in_time;
  if (!draws_layers)
    in_time = {.drawn = d.frames, .most = frames.most, .per_second = frames.per_second};
  return {.family = description.family,
          .width = d.width,
          .height = d.height,
          .steps = d.steps,
          .guidance = d.guidance,
          .max_sequence_length = d.max_sequence_length,
          .sampler = d.sampling.sampler.value_or(limits.sampling.usual),
          .size_multiple = limits.size_multiple,
          .largest_side = limits.largest_side,
          .max_text_tokens = limits.max_text_tokens,
          .frames = in_time,
          .layers = layers,
          .draws_alpha = description.vae.image_channels == 4,
          .takes_boxes = bool(limits.laid_out),
          .num_texts = limits.num_texts,
          .guidance_kind = limits.guidance,
          .pictures = {
              .takes_init = takes_init,
              .takes_mask = takes_init,
              .needs_mask = pictures.extra_channels == PicturesTaken::ExtraChannels::kMasked,
              .takes_control = pictures.extra_channels == PicturesTaken::ExtraChannels::kControl,
              .net_fills_in = pictures.nets_follow == PicturesTaken::NetsFollow::kMasked,
              .most_references = pictures.most_references,
              .strength = pictures.strength,
              .strength_with_mask = pictures.strength_with_mask}};
}

Generated Engine::generate(const Request& request, const Hooks& hooks,
                           const RunOptions& options) const {
  const auto turn = turns_.take(hooks.stop);
  std::vector<std::string> warnings;
  const auto keep = [&](const std::string& warning) { warnings.push_back(warning); };
  const auto settings = settle(request, {.warning = keep});
  check_initial_latents(request, settings, model().family());
  const BroughtAlong brought{
      .latents = request.latents,
      .pictures = prepare_pictures(request.pictures, settings.size(),
                                   model().family().description().limits.pictures, keep)};
  if (const auto slow = link_warning(request)) keep(*slow);
  const auto adapters =
      request.adapters ? shelf_.open(*request.adapters) : deployment_.files->adapters;
  Generated generated;
  const auto draw = [&](const Group& world) {
    const auto device = deployment_.devices[std::size_t(world.rank())];
    const c10::DeviceGuard on(device);
    const UseThreads threads(threads_);
    const bool is_first = world.rank() == 0;
    require(!is_first || hooks.preview_interval >= 0,
            "preview_interval should be at least 0 seconds, it is ", hooks.preview_interval);
    auto& model = *models_[std::size_t(world.rank())];
    check_same_request(world, deployment_, request, settings, adapters);
    model.adapt(adapters, is_first ? hooks.warning : Warn());
    // Warnings are reported here: a callback that throws must not leave the other ranks waiting.
    for (const auto& warning : warnings)
      if (is_first && hooks.warning) hooks.warning(warning);
    auto mine = generate_pictures(
        model, settings, brought, is_first ? hooks : Hooks{},
        {.run = options, .peaks = meter_.get(), .step_ends = bool(hooks.step_end)});
    if (meter_) {
      meter_->finish();
      mine.facts.peaks = meter_->measured(world, device);
    }
    if (is_first) generated = std::move(mine);
  };
  world_->run(draw, hooks.stop);
  generated.facts.load = loaded_;
  generated.facts.settings = settings;
  return generated;
}

}  // namespace braid
