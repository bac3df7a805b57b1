#include "pipeline/loading.h"

#include <ATen/ATen.h>

#include "pipeline/text_stream.h"

namespace braid {

Loading loading_on(const Mesh& mesh, const Deployment& deployment, const LoadHooks& hooks) {
  const auto device = deployment.devices[std::size_t(mesh.world.rank())];
  return {.deployment = deployment,
          .mesh = mesh,
          .weights = std::make_shared<ModelWeights>(deployment, device, hooks.warn),
          .offloaded = std::make_shared<OffloadedParts>(deployment.options.memory.offload, device),
          .options = {.dtype = deployment.dtype,
                      .device = device,
                      .on_bytes = hooks.on_bytes,
                      .on_read = hooks.on_read,
                      .packed = PackedWeights::kKept,
                      .second_stream = text_stream(deployment, device, hooks.warn)}};
}

std::vector<Tensor> encode_on_first(const Mesh& mesh, const at::TensorOptions& like,
                                    const std::vector<Tensor>& pictures,
                                    const std::function<EncodePicture()>& load) {
  const auto encode = mesh.world.rank() == 0 ? load() : EncodePicture();
  std::vector<Tensor> made;
  for (const auto& picture : pictures) {
    mesh.world.poll();
    const auto mine = encode ? encode(picture.to(like)) : at::empty({0}, like);
    mesh.world.await();
    made.push_back(mesh.world.broadcast(mine, 0));
  }
  return made;
}

}  // namespace braid
