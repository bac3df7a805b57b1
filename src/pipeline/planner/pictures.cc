#include "pipeline/planner/pictures.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "pipeline/request/check_pictures.h"

namespace braid {
namespace {

std::int64_t conv_parameters(std::int64_t in, std::int64_t out, std::int64_t kernel) {
  return out * (in * kernel * kernel + 1);
}

std::int64_t resnet_parameters(std::int64_t in, std::int64_t out) {
  const auto shortcut = in == out ? 0 : conv_parameters(in, out, 1);
  return 2 * (in + out) + conv_parameters(in, out, 3) + conv_parameters(out, out, 3) + shortcut;
}

std::int64_t held_bytes(const PicturesIn& in) {
  const auto of = [](const Pixels& p) { return std::int64_t(p.width) * p.height * p.channels(); };
  std::int64_t bytes = (in.init ? of(*in.init) : 0) + (in.mask ? of(*in.mask) : 0);
  for (const auto& reference : in.references) bytes += of(reference);
  for (const auto& control : in.controls) bytes += of(control.picture);
  return bytes;
}

// What the text encoder is shown of a reference, as prepare_pictures() has it.
PictureSize shown_size(const Pixels& reference, std::size_t count, const PicturesTaken& taken,
                       PictureSize size) {
  const Pixels bare{.width = reference.width, .height = reference.height, .rgb = {}};
  const auto shown =
      taken.fit_for_text ? taken.fit_for_text(bare) : fitted_reference(bare, count, taken, size);
  return {.width = shown.width, .height = shown.height};
}

// Pictures that a model does not draw without, where a request that is planned for has none.
std::optional<PicturesIn> with_needed(const PicturesIn& in, const PicturesTaken& taken,
                                      PictureSize size) {
  using Channels = PicturesTaken::ExtraChannels;
  const bool lacks_control = taken.extra_channels == Channels::kControl && in.controls.empty();
  const bool lacks_init = taken.extra_channels == Channels::kMasked && !in.init;
  const auto least = std::size_t(taken.least_references);
  if (!lacks_control && !lacks_init && in.references.size() >= least) return {};
  const Pixels stand_in{.width = size.width, .height = size.height, .rgb = {}};
  auto all = in;
  if (lacks_control) all.controls = {{.picture = stand_in}};
  if (lacks_init) all.init = all.mask = stand_in;
  all.references.resize(std::max(least, in.references.size()), stand_in);
  return all;
}

}  // namespace

TextOfPictures text_of_pictures(const PicturesIn& in, const PicturesTaken& taken,
                                PictureSize size) {
  if (in.references.empty()) return {};
  TextOfPictures text{.seen = taken.tokens_behind_prompt};
  if (!taken.tokens_for_text) return text;
  for (const auto& reference : in.references)
    text.read += taken.tokens_for_text(shown_size(reference, in.references.size(), taken, size));
  if (taken.counted_for_text == PicturesTaken::CountedForText::kMarks) {
    text.read -= std::int64_t(in.references.size());
    text.seen += text.read;
  }
  return text;
}

PlannedPictures planned_pictures(const Family& family, const PicturesIn& in, PictureSize size) {
  const auto& taken = family.description().limits.pictures;
  if (const auto all = with_needed(in, taken, size)) return planned_pictures(family, *all, size);
  PlannedPictures planned{.held_bytes = held_bytes(in)};
  const auto encode = [&](PictureSize of) {
    planned.encoded_pixels = std::max(planned.encoded_pixels, std::int64_t(of.width) * of.height);
  };
  const bool see_pixels = taken.nets_follow == PicturesTaken::NetsFollow::kPixels;
  if (in.init || (!in.controls.empty() && !see_pixels)) encode(size);
  for (const auto& looked_at : reference_sizes(in, taken, size)) {
    encode(looked_at);
    planned.references.push_back(family.num_tokens(looked_at));
  }
  const auto text = text_of_pictures(in, taken, size);
  planned.tokens_behind_prompt = text.seen;
  planned.tokens_read = text.read;
  planned.cache = in.reference_cache;
  planned.reference_use = taken.use_with(planned.cache);
  if (planned.reference_use == PicturesTaken::ReferenceUse::kOnce && !planned.references.empty())
    planned.references = {planned.reference_tokens()};
  return planned;
}

std::int64_t PlannedPictures::reference_tokens() const {
  return std::accumulate(references.begin(), references.end(), std::int64_t(0));
}

std::int64_t encoder_parameters(const VaeConfig& c) {
  const auto last = c.widths.back();
  auto sum = conv_parameters(c.image_channels, c.encoder_stem(), 3);
  auto width = c.encoder_stem();
  for (std::size_t i = 0; i < c.widths.size(); ++i) {
    for (std::int64_t layer = 0; layer < c.layers_per_block; ++layer) {
      sum += resnet_parameters(width, c.widths[i]);
      width = c.widths[i];
    }
    if (i + 1 < c.widths.size()) sum += conv_parameters(width, width, 3);
  }
  const auto attention = c.mid_attention ? 2 * last + 4 * conv_parameters(last, last, 1) : 0;
  return sum + 2 * resnet_parameters(last, last) + attention + 2 * last +
         conv_parameters(last, 2 * c.latent_channels, 3);
}

}  // namespace braid
