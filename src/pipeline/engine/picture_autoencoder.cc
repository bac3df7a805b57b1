// The public interface over autoencoders alone.
#include "braid/picture_autoencoder.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>

#include "base/error.h"
#include "models/vae/model.h"
#include "pipeline/deployment/ranks.h"
#include "pipeline/devices/cached_memory.h"
#include "pipeline/devices/devices.h"
#include "pipeline/devices/rank_threads.h"
#include "pipeline/engine/turns.h"
#include "pipeline/files/part_tensors.h"
#include "pipeline/request/choice.h"
#include "pipeline/request/latents.h"

namespace braid {
namespace {

// A single rank, which no launcher's others take part in.
Deployment deployed_on_first_device(const PipelineOptions& asked, const Warn& warn) {
  auto options = asked;
  options.devices = {device_names(asked).front()};
  options.layout = {.ranks = Ranks::kThreads};
  options.memory = {};
  options.adapters = {};
  return deploy(
      {.pipeline = options, .needed = WeightsNeeded::kTransformer, .say = warn, .warn = warn});
}

Tiles tiles_of(VaeTiling tiling) {
  checked_choice("tiling", tiling, VaeTiling::kOff);
  return tiling == VaeTiling::kOn ? Tiles::kWhereLarger : Tiles::kNever;
}

// [B channels, rows, columns], checked, with sides that are multiples of `multiple`.
Tensor planes_in(const char* name, const Latents& values, std::int64_t channels,
                 std::int64_t multiple) {
  const auto planes = tensor_in(name, values, 4);
  require(planes.numel() > 0, name, " of shape ", planes.sizes(), " have 0 values");
  require(planes.size(1) == channels, name, " should have ", channels, " channels, they have ",
          planes.size(1));
  require(planes.size(2) % multiple == 0 && planes.size(3) % multiple == 0, name,
          " should have sides that are multiples of ", multiple, ", they have ", planes.size(2),
          " and ", planes.size(3));
  return planes;
}

}  // namespace

class PictureAutoencoder::State {
 public:
  State(const PipelineOptions& asked, const Hooks& hooks)
      : State(deployed_on_first_device(asked, hooks.warning), hooks) {}
  State(Deployment deployment, const Hooks& hooks)
      : gives_back_({deployment.devices.front()}),
        world_(make_world(deployment)),
        threads_(threads_per_rank(deployment.options, world_->ranks_on_these_cores())),
        device_(deployment.devices.front()),
        like_(at::TensorOptions(deployment.dtype).device(device_)) {
    const auto& family = *deployment.family;
    on_device(hooks, [&](const Group& world) {
      const auto& part = family.part(Part::Role::kDecoder);
      const Weights weights(source_of_part(family, part, deployment.files.get(), {}).tensors,
                            {.dtype = like_.dtype().toScalarType(),
                             .device = device_,
                             .on_bytes = [&](std::int64_t) { world.poll(); }});
      vae_.emplace(family.description().vae, weights);
    });
  }

  Latents decode(const Latents& latents, VaeTiling tiling, const Hooks& hooks) const {
    const auto& config = vae_->config();
    const auto given = planes_in("latents", latents, config.latent_channels, /*multiple=*/1);
    const auto tiles = tiles_of(tiling);
    return mapped(given, hooks, [&](const Tensor& one, const BeforeTile& before_tile) {
      return vae_->decode(one, tiles, before_tile);
    });
  }

  Latents encode(const Latents& pictures, VaeTiling tiling, const Hooks& hooks) const {
    const auto& config = vae_->config();
    const auto given = planes_in("pictures", pictures, config.image_channels, config.downscale());
    const auto tiles = tiles_of(tiling);
    return mapped(given, hooks, [&](const Tensor& one, const BeforeTile& before_tile) {
      const auto moments = vae_->encode(one, tiles, before_tile);
      return at::cat({moments.mean, moments.logvar}, 1);
    });
  }

  bool is_here() const { return turns_.is_here(); }

 private:
  using BeforeTile = std::function<void()>;

  void on_device(const Hooks& hooks, const std::function<void(const Group&)>& body) const {
    const auto turn = turns_.take(hooks.stop);
    const auto run = [&](const Group& world) {
      const c10::InferenceMode guard;
      const c10::DeviceGuard on(device_);
      const UseThreads threads(threads_);
      world.poll();
      body(world);
    };
    world_->run(run, hooks.stop);
  }

  // One picture after another, which bounds memory.
  Latents mapped(const Tensor& given, const Hooks& hooks,
                 const std::function<Tensor(const Tensor&, const BeforeTile&)>& map) const {
    Latents made;
    on_device(hooks, [&](const Group& world) {
      const auto poll = [&] { world.poll(); };
      std::vector<Tensor> each;
      for (const auto& one : given.split(1))
        each.push_back(map(one.to(like_), poll).to(at::kCPU, at::kFloat));
      made = latents_of(at::cat(each));
    });
    return made;
  }

  const GivesBackMemory gives_back_;
  std::unique_ptr<World> world_;
  int threads_;
  at::Device device_;
  at::TensorOptions like_;  // dtype and device to compute in
  std::optional<Vae> vae_;
  const Turns turns_{"autoencoder"};
};

PictureAutoencoder::PictureAutoencoder(const PipelineOptions& options, const Hooks& hooks)
    : state_(std::make_unique<State>(options, hooks)) {}
PictureAutoencoder::PictureAutoencoder(PictureAutoencoder&&) noexcept = default;
PictureAutoencoder& PictureAutoencoder::operator=(PictureAutoencoder&& other) noexcept {
  replace_where_made(state_, other.state_);
  return *this;
}
PictureAutoencoder::~PictureAutoencoder() { end_where_made(state_); }

Latents PictureAutoencoder::decode(const Latents& latents, VaeTiling tiling,
                                   const Hooks& hooks) const {
  return held(state_, "autoencoder").decode(latents, tiling, hooks);
}

Latents PictureAutoencoder::encode(const Latents& pictures, VaeTiling tiling,
                                   const Hooks& hooks) const {
  return held(state_, "autoencoder").encode(pictures, tiling, hooks);
}

}  // namespace braid
