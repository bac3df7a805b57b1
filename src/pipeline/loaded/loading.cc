#include "pipeline/loaded/loading.h"

#include <ATen/ATen.h>

#include "pipeline/loaded/text_stream.h"

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
                      .stored_codes = StoredCodes::kKept,
                      .second_stream = text_stream(deployment, device, hooks.warn)},
          .encoded = std::make_shared<EncodedCache>(deployment.options.condition_cache)};
}

PictureEncoding picture_encoding(const Loading& loading) {
  return {.mesh = loading.mesh,
          .like = at::TensorOptions(loading.options.dtype).device(loading.device()),
          .encoded = loading.encoded};
}

std::vector<Tensor> PictureEncoding::encode(const std::vector<Tensor>& pictures,
                                            const std::string& how,
                                            const std::function<EncodePicture()>& load) const {
  EncodePicture encoder;
  const auto encode_now = [&](const Tensor& picture) {
    if (!encoder) encoder = load();
    return encoder(picture.to(like));
  };
  const auto encode_or_recall = [&](const Tensor& picture) {
    if (!encoded->is_on()) return encode_now(picture);
    auto key = key_of_picture(picture, how);
    if (const auto* const known = encoded->find(key))
      return known->tensors.front().to(like.device());
    const auto made = encode_now(picture);
    encoded->keep(std::move(key), {.tensors = {made}});
    return made;
  };
  std::vector<Tensor> made;
  for (const auto& picture : pictures) {
    mesh.world.poll();
    const auto mine = mesh.world.rank() == 0 ? encode_or_recall(picture) : at::empty({0}, like);
    mesh.world.await();
    made.push_back(mesh.world.broadcast(mine, 0));
  }
  return made;
}

}  // namespace braid
