// The pictures of a request, encoded for the parts of a model that look at them.
#include <ATen/ATen.h>

#include "base/error.h"
#include "pipeline/model.h"

namespace braid {

// An encoder is needed at most once per request, for pictures that were not encoded before; in
// between it takes no memory.
std::vector<Tensor> Model::encode_on_first(
    const std::vector<Tensor>& pictures, const std::string& how,
    const std::function<Encode(const WeightsOf&)>& load) const {
  const LoadOptions options{.dtype = dtype_, .device = device_};
  const auto weights = [&](const Part& part) {
    return Weights(source_of_part(*family_, part, &files_, {}).tensors, options);
  };
  const auto like = at::TensorOptions(dtype_).device(device_);
  Encode encode;
  const auto encode_now = [&](const Tensor& picture) {
    if (!encode) encode = load(weights);
    return encode(picture.to(like));
  };
  const auto encode_or_recall = [&](const Tensor& picture) {
    if (!encoded_.is_on()) return encode_now(picture);
    auto key = key_of_picture(picture, how);
    if (const auto* const known = encoded_.find(key)) return known->tensors.front().to(device_);
    const auto made = encode_now(picture);
    encoded_.keep(std::move(key), {.tensors = {made}});
    return made;
  };
  std::vector<Tensor> made;
  for (const auto& picture : pictures) {
    mesh_.world.poll();
    const auto mine = mesh_.world.rank() == 0 ? encode_or_recall(picture) : at::empty({0}, like);
    mesh_.world.await();
    made.push_back(mesh_.world.broadcast(mine, 0));
  }
  return made;
}

std::vector<Tensor> Model::encode_with(
    const std::vector<Tensor>& pictures, const std::string& how,
    const std::function<Tensor(const Vae&, const Tensor&)>& encode) const {
  return encode_on_first(pictures, how, [&](const WeightsOf& weights) {
    const auto vae = std::make_shared<const Vae>(family_->description().vae,
                                                 weights(family_->part(Part::Role::kDecoder)),
                                                 Vae::Parts::kEncoder);
    return [=](const Tensor& picture) { return encode(*vae, picture); };
  });
}

std::vector<Tensor> Model::embed_pictures(const std::vector<Tensor>& pictures) const {
  return encode_on_first(pictures, "embedded", [&](const WeightsOf& weights) {
    return family_->load_picture_embedder(weights);
  });
}

std::vector<VaeMoments> Model::encode_pictures(const std::vector<Tensor>& pictures,
                                               Tiles tiles) const {
  const auto encode = [&](const Vae& vae, const Tensor& picture) {
    const auto moments = vae.encode(picture, tiles);
    return at::cat({moments.mean, moments.logvar}, 1);
  };
  const auto joined = encode_with(pictures, text_of("moments ", int(tiles)), encode);
  std::vector<VaeMoments> made;
  for (const auto& both : joined) {
    const auto halves = both.chunk(2, 1);
    made.push_back({.mean = halves[0], .logvar = halves[1]});
  }
  return made;
}

std::vector<Tensor> Model::encode_means(const std::vector<Tensor>& pictures, Tiles tiles) const {
  return encode_with(pictures, text_of("means ", int(tiles)),
                     [&](const Vae& vae, const Tensor& picture) {
                       return vae.from_encoder(vae.encode(picture, tiles).mean);
                     });
}

}  // namespace braid
