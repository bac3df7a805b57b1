#include "pipeline/engine/engine.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <stop_token>
#include <utility>

#include "base/error.h"
#include "base/loaded_libraries.h"
#include "comm/texts.h"
#include "ops/attention_kernel.h"
#include "pipeline/deployment/link_speed.h"
#include "pipeline/deployment/ranks.h"
#include "pipeline/deployment/same_run.h"
#include "pipeline/devices/rank_threads.h"
#include "pipeline/engine/generate.h"

namespace braid {
namespace {

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
  Progress progress{.phase = Phase::kLoad, .done = 0, .total = deployment.stored_bytes()};
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

using StopCallback = std::stop_callback<std::function<void()>>;

}  // namespace

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
  const auto tell = [&](const Group& world) {
    world.await();
    const auto bytes = world.broadcast(tensor_of_text(text), 0);
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
  (void)prepare_pictures(request.pictures, settings, model().family().description().limits.pictures,
                         hooks.warning);
  return deployment_.tiled(completed(request, settings));
}

ModelInfo Engine::info() const { return info_of(model().family().description()); }

// What a process makes of a request by itself, before its ranks run.
struct Engine::Prepared {
  Settings settings;
  BroughtAlong brought;
  std::vector<AppliedAdapter> adapters;
  std::vector<std::string> warnings;
};

Engine::Prepared Engine::prepared(const Request& request) const {
  std::vector<std::string> warnings;
  const auto keep = [&](const std::string& warning) { warnings.push_back(warning); };
  auto settings = settle(request, {.warning = keep});
  check_initial_latents(request, settings, model().family());
  auto pictures = prepare_pictures(request.pictures, settings,
                                   model().family().description().limits.pictures, keep);
  if (const auto slow = link_warning(request)) keep(*slow);
  auto adapters = request.adapters ? shelf_.open(*request.adapters) : deployment_.files->adapters;
  return {.settings = std::move(settings),
          .brought = {.latents = request.latents, .pictures = std::move(pictures)},
          .adapters = std::move(adapters),
          .warnings = std::move(warnings)};
}

void Engine::fail_generate(const std::exception_ptr& failure) const {
  const auto turn = turns_.take({});
  world_->fail_run(failure);
}

Generated Engine::generate(const Request& request, const Hooks& hooks,
                           const RunOptions& options) const {
  const auto turn = turns_.take(hooks.stop);
  const auto mine = made_before_run(*world_, [&] { return prepared(request); });
  const auto& settings = mine.settings;
  Generated generated;
  std::stop_source stopped;
  std::optional<StopCallback> heeds(std::in_place, hooks.stop, [&] { stopped.request_stop(); });
  const auto draw = [&](const Group& world) {
    const auto device = deployment_.devices[std::size_t(world.rank())];
    const c10::DeviceGuard on(device);
    const UseThreads threads(threads_);
    const bool is_first = world.rank() == 0;
    require(!is_first || hooks.preview_interval >= 0,
            "preview_interval should be at least 0 seconds, it is ", hooks.preview_interval);
    auto& model = *models_[std::size_t(world.rank())];
    check_same_request(world, deployment_, request, settings, mine.adapters);
    model.adapt(mine.adapters, is_first ? hooks.warning : Warn());
    // Warnings are reported here: a callback that throws must not leave the other ranks waiting.
    for (const auto& warning : mine.warnings)
      if (is_first && hooks.warning) hooks.warning(warning);
    const auto heed_no_longer = [&] {
      if (!is_first) return;
      heeds.reset();
      world.poll();
    };
    auto made = generate_pictures(model, settings, mine.brought, is_first ? hooks : Hooks{},
                                  {.run = options,
                                   .peaks = meter_.get(),
                                   .step_ends = bool(hooks.step_end),
                                   .before_last_picture = heed_no_longer});
    if (meter_) {
      meter_->finish();
      made.facts.peaks = meter_->measured(world, device);
    }
    if (is_first) generated = std::move(made);
  };
  world_->run(draw, stopped.get_token());
  generated.facts.load = loaded_;
  generated.facts.settings = settings;
  return generated;
}

}  // namespace braid
