#include "pipeline/engine/start.h"

#include <ATen/ATen.h>

#include "pipeline/request/check_pictures.h"
#include "pipeline/sampling/noise.h"

namespace braid {
namespace {

using ExtraChannels = PicturesTaken::ExtraChannels;
using NetsFollow = PicturesTaken::NetsFollow;

// Packs given latents to tokens.
Tensor packed_latents(const Latents& latents, const Family& family, const Settings& settings,
                      at::ScalarType dtype) {
  const auto given = at::tensor(latents.values, at::kFloat);
  const auto shaped = given.view(latents.shape).to(family.latents_dtype(dtype));
  const bool is_packed = latents.shape == latent_shapes(settings, family).packed;
  return is_packed ? shaped : family.pack(shaped);
}

// The picture encoded into the channels beside the latents.
Tensor pixels_to_encode_13HW(ExtraChannels extra, const PreparedPictures& pictures) {
  switch (extra) {
    case ExtraChannels::kNothing:
      break;
    case ExtraChannels::kControl:
      return pictures.controls_13HW.front();
    case ExtraChannels::kMasked:
      return pictures.init_13HW * (1 - pictures.mask_11HW);
  }
  return {};
}

Tensor expanded_to(const Tensor& x_1LC, std::int64_t batch) {
  return x_1LC.expand({batch, x_1LC.size(1), x_1LC.size(2)});
}

// Samples the encoder's distribution, once per picture.
Tensor unscaled_sample(const VaeMoments& moments, const DenoiseJob& job) {
  const auto noise =
      draw_noise(job.generators, moments.mean.sizes().slice(1), moments.mean.scalar_type());
  return moments.mean + at::exp(0.5 * moments.logvar) * noise.to(moments.mean.device());
}

}  // namespace

Start::Start(const Model& model, const Settings& settings, const std::optional<Latents>& latents,
             const PreparedPictures& pictures)
    : model_(model),
      family_(model.family()),
      settings_(settings),
      size_(settings.size()),
      mask_11HW_(pictures.mask_11HW) {
  if (latents) given_ = packed_latents(*latents, family_, settings, model.dtype());
  encode(pictures);
}

void Start::encode(const PreparedPictures& pictures) {
  const auto tiles = tiles_for(settings_.vae_tiling, size_);
  const auto seen = pixels_to_encode_13HW(taken().extra_channels, pictures);
  const bool is_sampled = pictures.init_13HW.defined() && settings_.strength &&
                          taken().init_as == PicturesTaken::InitAs::kSample;
  std::vector<Tensor> encoded;
  if (is_sampled) encoded.push_back(pictures.init_13HW);
  if (seen.defined()) encoded.push_back(seen);
  const auto followed = pixels_followed_13HW(pictures);
  if (taken().nets_follow == NetsFollow::kPixels) {
    for (std::size_t i = 0; i < followed.size(); ++i)
      encoded_for_nets_.push_back(model_.denoisers().controls().encode(
          settings_.followed[i].net, followed[i].to(model_.device(), model_.dtype())));
  } else {
    encoded.insert(encoded.end(), followed.begin(), followed.end());
  }
  if (!encoded.empty()) {
    const auto moments = model_.autoencoder().encode(encoded, tiles);
    auto next = moments.begin();
    if (is_sampled) init_ = *next++;
    if (seen.defined()) encoded_ = *next++;
    followed_.assign(next, moments.end());
  }
  encode_pictures(pictures, tiles);
}

// One for each net that is followed. A net that fills in sees black where it draws.
std::vector<Tensor> Start::pixels_followed_13HW(const PreparedPictures& pictures) const {
  const auto count = settings_.followed.size();
  if (taken().nets_follow == NetsFollow::kMasked && count > 0)
    return {pictures.init_13HW * (1 - pictures.mask_11HW) - pictures.mask_11HW};
  const auto& all = pictures.controls_13HW;
  return {all.begin(), all.begin() + std::ptrdiff_t(count)};
}

Start::~Start() {
  if (has_kept_references_) model_.denoisers().forget_references();
}

void Start::encode_references() {
  if (has_kept_references_)
    model_.denoisers().keep_references(family_.references_alone(references_));
}

void Start::encode_pictures(const PreparedPictures& pictures, Tiles tiles) {
  using References = PicturesTaken::References;
  std::vector<Tensor> looked_at;  // those seen as tokens
  if (taken().references == References::kBesideNoise) looked_at = pictures.references_1CHW;
  const bool starts_from_mean =
      pictures.init_13HW.defined() && taken().init_as != PicturesTaken::InitAs::kSample;
  if (starts_from_mean) looked_at.insert(looked_at.begin(), pictures.init_13HW);
  if (looked_at.empty()) return;
  if (taken().reference_latents == PicturesTaken::ReferenceLatents::kSample) {
    sampled_references_ = model_.autoencoder().encode(looked_at, tiles);
    return;
  }
  for (const auto& mean : model_.autoencoder().encode_means(looked_at, tiles)) {
    const auto tokens = family_.reference(mean, int(references_.size()));
    const bool is_init = starts_from_mean && !clean_1NC_.defined();
    if (is_init) clean_1NC_ = tokens.x_BLC;
    if (!is_init || init_is_reference(int(looked_at.size()) - 1, taken()))
      references_.push_back(tokens);
  }
  has_kept_references_ =
      taken().use_with(settings_.reference_cache) == PicturesTaken::ReferenceUse::kOnce;
}

const PicturesTaken& Start::taken() const { return family_.description().limits.pictures; }

Tensor Start::sampled(const VaeMoments& moments, const DenoiseJob& job) const {
  return scaled_latents(family_.description().vae, unscaled_sample(moments, job));
}

// The mask at the size of latents, for each channel.
Tensor Start::packed_mask() const {
  const auto shape = family_.latent_shape(size_);
  const auto small = taken().init_as == PicturesTaken::InitAs::kReference
                         ? at::upsample_bilinear2d(mask_11HW_, {shape[1], shape[2]}, false)
                         : at::upsample_nearest2d(mask_11HW_, {shape[1], shape[2]});
  return family_.pack(small.expand({1, shape[0], shape[1], shape[2]}))
      .to(at::TensorOptions(model_.dtype()).device(model_.device()));
}

// All pixels of a latent become channels.
Tensor Start::extra_mask() const {
  const auto cells = at::pixel_unshuffle(mask_11HW_, family_.description().vae.downscale());
  return family_.pack(cells).to(at::TensorOptions(model_.dtype()).device(model_.device()));
}

Tensor Start::extra_latents(const DenoiseJob& job) const {
  const auto latents = family_.pack(sampled(*encoded_, job));
  if (taken().extra_channels == ExtraChannels::kControl) return latents;
  return at::cat({latents, expanded_to(extra_mask(), latents.size(0))}, -1);
}

// The initial picture's sample, if any, is drawn before the noise. With a mask the reference then
// draws a sample of the masked picture, except for kReference models. Only models with channels for
// it use that sample; here it is drawn and dropped. Models and nets that see the masked picture
// keep the rest of it themselves.
void Start::begin_from_picture(DenoiseJob& job, float sigma) const {
  const auto batch = std::int64_t(job.generators.size());
  const auto clean =
      clean_1NC_.defined() ? expanded_to(clean_1NC_, batch) : family_.pack(sampled(*init_, job));
  const auto noise = family_.draw(job.generators, size_, model_.dtype()).to(model_.device());
  job.latents_BNC = with_noise(clean, noise, sigma).to(family_.latents_dtype(model_.dtype()));
  if (!mask_11HW_.defined() || encoded_ || taken().nets_follow == NetsFollow::kMasked) return;
  if (taken().init_as != PicturesTaken::InitAs::kReference)
    (void)draw_noise(job.generators, family_.latent_shape(size_), model_.dtype());
  job.kept = KeptRegion{.clean_BNC = clean, .noise_BNC = noise, .mask_BNC = packed_mask()};
}

Tensor Start::noise_of(const DenoiseJob& job, int first) const {
  const auto batch = std::int64_t(job.generators.size());
  const auto dtype = family_.latents_dtype(model_.dtype());
  const auto noise = given_.defined() ? given_.narrow(0, first, batch)
                                      : family_.draw(job.generators, size_, dtype);
  return noise.to(model_.device());
}

// What a net sees of its picture: as pixels, or as a sample of its latents, with what a mask keeps.
Tensor Start::followed_BNC(std::size_t number, const DenoiseJob& job) const {
  if (taken().nets_follow == NetsFollow::kPixels)
    return expanded_to(encoded_for_nets_[number], std::int64_t(job.generators.size()));
  auto latents =
      scaled_for_nets(family_.description().vae, unscaled_sample(followed_[number], job));
  if (taken().nets_follow == NetsFollow::kMasked) {
    const auto kept = 1 - at::upsample_nearest2d(mask_11HW_, latents.sizes().slice(2));
    const auto batch = latents.size(0);
    latents = at::cat({latents, kept.to(latents.options()).expand({batch, -1, -1, -1})}, 1);
  }
  return family_.pack(latents);
}

// Samples of the control pictures, and what else the nets see beside the input with the prompt.
std::vector<ControlInput> Start::controls(const DenoiseJob& job) const {
  std::vector<ControlInput> inputs;
  for (const auto& followed : settings_.followed) {
    inputs.push_back(
        family_.control(job.branches.front(), followed.net, followed.mode, settings_.guidance));
    auto& input = inputs.back();
    input.net = followed.net;
    input.x_BNC = followed_BNC(inputs.size() - 1, job);
    input.scale = at::scalar_tensor(followed.scale, at::kFloat).to(model_.device());
  }
  return inputs;
}

// Control pictures' samples are drawn before the noise, masked pictures' and references' after. The
// reference draws that of a picture to fill in apart from the request's seed.
void Start::begin(DenoiseJob& job, int first, float first_sigma) const {
  Tensor seen;
  if (taken().extra_channels == ExtraChannels::kControl) seen = extra_latents(job);
  const bool are_masked = taken().nets_follow == NetsFollow::kMasked;
  std::vector<ControlInput> controls;
  if (!are_masked) controls = this->controls(job);
  for (const auto& followed : settings_.followed)
    job.followed.push_back({.from = followed.from, .to = followed.to});
  if (init_ || clean_1NC_.defined()) {
    begin_from_picture(job, first_sigma);
  } else {
    job.latents_BNC = noise_of(job, first);
  }
  if (taken().extra_channels == ExtraChannels::kMasked) seen = extra_latents(job);
  if (are_masked) controls = this->controls(job);
  const auto batch = std::int64_t(job.generators.size());
  auto references = references_;
  for (const auto& moments : sampled_references_)
    references.push_back(family_.reference(sampled(moments, job), int(references.size())));
  for (auto& branch : job.branches) {
    branch.extra_BLC = seen;
    branch.controls = controls;
    if (!has_kept_references_)
      for (auto reference : references) {
        reference.x_BLC = expanded_to(reference.x_BLC, batch);
        branch.references.push_back(reference);
      }
    family_.arrange(branch);
  }
}

}  // namespace braid
