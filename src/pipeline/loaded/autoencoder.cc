#include "pipeline/loaded/autoencoder.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "parallel/map_shared.h"
#include "pipeline/request/settings.h"

namespace braid {

Tiles tiles_for(VaeTiling tiling, PictureSize size) {
  return is_tiled(tiling, size) ? Tiles::kWhereLarger : Tiles::kNever;
}

namespace {

std::optional<Paged<Vae>> load_decoder(const Loading& loading) {
  auto load = loading.options;
  load.paging = loading.offloaded->vae();
  const auto w = loading.weights->of(loading.family().part(Part::Role::kDecoder), load);
  return Paged<Vae>{.page = w.page(),
                    .network = Vae(loading.family().description().vae, w, Vae::Parts::kDecoder)};
}

constexpr std::int64_t kDimsWithTime = 5;  // [B Z T h w]

// The latents of all frames, one after another; a picture's as they are.
Tensor frames_of(const Tensor& latents) {
  if (latents.dim() != kDimsWithTime) return latents;
  return latents.transpose(1, 2).flatten(0, 1);
}

Group ranks_that_decode(const Loading& loading) {
  return loading.asked().layout.decode == DecodeRanks::kAll ? loading.mesh.world : Group();
}

}  // namespace

Autoencoder::Autoencoder(const Loading& loading)
    : files_(loading.deployment.files),
      family_(loading.deployment.family),
      mesh_(loading.mesh),
      encoding_(picture_encoding(loading)),
      like_(encoding_.like),
      decoders_(ranks_that_decode(loading)),
      decoder_(mesh_.world.rank() < decoders_.size() ? load_decoder(loading) : std::nullopt) {}

// The tiles of all pictures form one list of work; a picture without tiles is a single item.
void Autoencoder::decode_together(const Tensor& latents, Tiles tiles,
                                  const std::function<void(const Tensor&)>& on_picture) const {
  const auto& vae = decoder_->network;
  std::vector<Tensor> work;
  for (const auto& one : latents.split(1))
    for (const auto& tile : vae.tiles_of(one, tiles)) work.push_back(tile);
  const auto decoded = map_shared(decoders_, work, [&](const Tensor& tile) {
    mesh_.world.poll();
    return vae.decode_tile(tile);
  });
  if (decoded.empty()) return;  // the first rank has them
  check(decoded.size() == work.size(), "the ranks decode ", decoded.size(), " tiles, not ",
        work.size());
  const auto each = std::int64_t(decoded.size()) / latents.size(0);
  for (std::int64_t i = 0; i < latents.size(0); ++i)
    on_picture(vae.join_tiles(latents.narrow(0, i, 1),
                              {decoded.begin() + i * each, decoded.begin() + (i + 1) * each}));
}

void Autoencoder::decode(const Tensor& tokens_BNC, PictureSize size, Tiles tiles,
                         const std::function<void(const Tensor&)>& on_picture) const {
  if (!decoder_) return;
  const auto in_use = decoder_->page.use();
  const auto& vae = decoder_->network;
  const auto latents =
      vae.to_decoder(frames_of(family_->unpack(tokens_BNC.to(like_.dtype()), size)));
  if (decoders_.size() == 1) {  // tile by tile, which needs less memory than a list of tiles
    const auto poll = [&] { mesh_.world.poll(); };
    for (const auto& one : latents.split(1)) on_picture(vae.decode(one, tiles, poll));
    return;
  }
  const bool are_cut = vae.tiles_of(latents.narrow(0, 0, 1), tiles).size() > 1;
  for (const auto& wave : latents.split(are_cut ? 1 : decoders_.size()))
    decode_together(wave, tiles, on_picture);
}

Tensor Autoencoder::colors_of(const Tensor& tokens_BNC, PictureSize size) const {
  const auto& vae = decoder_->network;
  const auto decode = [&](const Tensor& latents) {
    const auto in_use = decoder_->page.use();
    return vae.decode(latents.to(like_), Tiles::kNever);
  };
  if (!colors_) colors_.emplace(vae.config().latent_channels, decode);
  auto latents = family_->unpack(tokens_BNC.to(like_), size);
  if (latents.dim() == kDimsWithTime) latents = latents.select(2, 0);
  return (*colors_)(vae.to_decoder(latents));
}

std::vector<Tensor> Autoencoder::encode_with(
    const std::vector<Tensor>& pictures, const std::string& how,
    const std::function<Tensor(const Vae&, const Tensor&)>& encode) const {
  return encoding_.encode(pictures, how, [&]() -> EncodePicture {
    const auto& part = family_->part(Part::Role::kDecoder);
    const Weights weights(source_of_part(*family_, part, files_.get(), {}).tensors,
                          {.dtype = like_.dtype().toScalarType(),
                           .device = like_.device(),
                           .on_bytes = [world = mesh_.world](std::int64_t) { world.poll(); }});
    const auto vae =
        std::make_shared<const Vae>(family_->description().vae, weights, Vae::Parts::kEncoder);
    return [=](const Tensor& picture) { return encode(*vae, picture); };
  });
}

std::vector<VaeMoments> Autoencoder::encode(const std::vector<Tensor>& pictures,
                                            Tiles tiles) const {
  const auto encode = [&](const Vae& vae, const Tensor& picture) {
    const auto moments = vae.encode(picture, tiles, [&] { mesh_.world.poll(); });
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

std::vector<Tensor> Autoencoder::encode_means(const std::vector<Tensor>& pictures,
                                              Tiles tiles) const {
  const auto encode = [&](const Vae& vae, const Tensor& picture) {
    return vae.from_encoder(vae.encode(picture, tiles, [&] { mesh_.world.poll(); }).mean);
  };
  return encode_with(pictures, text_of("means ", int(tiles)), encode);
}

}  // namespace braid
