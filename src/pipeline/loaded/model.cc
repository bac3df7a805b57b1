#include "pipeline/loaded/model.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

namespace braid {
namespace {

// The first rank's counts, as ranks on different kinds of devices would choose differently.
Loading loading_of_first(const Mesh& mesh, const Deployment& deployment, const LoadHooks& hooks) {
  auto loading = loading_on(mesh, deployment, hooks);
  mesh.world.await();  // until each rank has read its configuration
  const auto mine = at::full({1}, std::int64_t(loading.options.dtype), at::kLong);
  loading.options.dtype = at::ScalarType(mesh.world.broadcast(mine, 0).item<std::int64_t>());
  return loading;
}

LoadHooks counted(LoadHooks hooks, const std::shared_ptr<BytesRead>& sum) {
  hooks.on_read = [sum](const BytesRead& read) { *sum += read; };
  return hooks;
}

}  // namespace

Model::Model(const Deployment& deployment, const Mesh& mesh, const LoadHooks& hooks,
             std::shared_ptr<BytesRead> sum)
    : Model(loading_of_first(mesh, deployment, counted(hooks, sum)), hooks.warn, sum) {}

Model::Model(const Loading& loading, const Warn& warn, std::shared_ptr<const BytesRead> bytes_read)
    : family_(loading.deployment.family),
      mesh_(loading.mesh),
      dtype_(loading.options.dtype),
      device_(loading.device()),
      recorded_step_(loading.asked().memory.recorded_step),
      weights_(loading.weights),
      encoded_(loading.encoded),
      bytes_read_(std::move(bytes_read)),
      autoencoder_(loading),
      encoders_(loading, warn),
      denoisers_(loading) {}

void Model::forget_graphs() const {
  const c10::DeviceGuard on(device_);
  denoisers_.forget_graphs();
}

void Model::decode(const Tensor& tokens_BNC, PictureSize size, Tiles tiles,
                   const std::function<void(const Tensor&)>& on_picture) const {
  if (recorded_step_ == RecordedStep::kDropped) forget_graphs();
  autoencoder_.decode(tokens_BNC, size, tiles, on_picture);
}

}  // namespace braid
