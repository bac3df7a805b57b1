#include "pipeline/pictures/check_pictures.h"

#include <algorithm>

#include "base/error.h"

namespace braid {
namespace {

using ChannelsBeside = PicturesTaken::Beside;

void check_pixels(const char* name, const Pixels& picture) {
  require(picture.width > 0 && picture.height > 0, "the ", name, " should have pixels, it has ",
          picture.width, "x", picture.height);
  const auto values = std::size_t(picture.width) * std::size_t(picture.height) * 3;
  require(picture.rgb.size() == values, "the ", name, " of ", picture.width, "x", picture.height,
          " pixels should have ", values, " values, it has ", picture.rgb.size());
}

void check_all_pixels(const PicturesIn& in) {
  if (in.init) check_pixels("initial picture", *in.init);
  if (in.mask) check_pixels("mask", *in.mask);
  for (const auto& reference : in.references) check_pixels("reference", reference);
  if (in.control) check_pixels("control picture", *in.control);
}

void check_taken(const PicturesIn& in, const PicturesTaken& taken) {
  const int references = int(in.references.size());
  require(!in.init || taken.init != PicturesTaken::Init::kNever,
          "this model starts from noise alone: it takes no initial picture");
  require(references == 0 || taken.most_references > 0, "this model looks at no references, ",
          references, references == 1 ? " was given" : " were given");
  require(references <= taken.most_references, "this model looks at ", taken.most_references,
          taken.most_references == 1 ? " reference" : " references", " at most, ", references,
          " were given");
  require(!in.control || taken.beside == ChannelsBeside::kControl,
          "this model follows no control picture: that takes one that was trained for it");
}

void check_needed(const PicturesIn& in, const PicturesTaken& taken) {
  require(in.control || taken.beside != ChannelsBeside::kControl,
          "this model needs a control picture to follow");
  require((in.init && in.mask) || taken.beside != ChannelsBeside::kMasked,
          "this model fills pictures in: it needs an initial picture and a mask");
}

}  // namespace

void check_pictures(const Request& request, const PicturesTaken& taken) {
  const auto& in = request.pictures;
  check_taken(in, taken);
  check_needed(in, taken);
  check_all_pixels(in);
  require(in.init || !in.mask, "a mask needs an initial picture");
  require(in.init || !in.strength, "a strength needs an initial picture");
  require(!in.init || !request.latents, "there are initial latents and an initial picture: give ",
          "one of them");
  if (in.mask)
    require(in.mask->width == in.init->width && in.mask->height == in.init->height,
            "the mask should have the size of the initial picture, ", in.init->width, "x",
            in.init->height, ", it has ", in.mask->width, "x", in.mask->height);
  if (in.strength)
    require(*in.strength >= 0 && *in.strength <= 1,
            "the strength should lie between 0 and 1, it is ", *in.strength);
}

PictureSize size_without_request(const PicturesIn& in, const RequestLimits& limits) {
  const auto of = [&](const Pixels& picture) -> PictureSize {
    const auto larger = std::max(picture.width, picture.height);
    const double scale = std::min(1.0, double(limits.largest_side) / larger);
    const auto side = [&](int pixels) {
      return std::max(limits.size_multiple, int(pixels * scale));
    };
    return {.width = side(picture.width), .height = side(picture.height)};
  };
  if (in.init) return of(*in.init);
  if (in.control) return of(*in.control);
  if (!in.references.empty()) return of(limits.pictures.fit_reference(in.references.front()));
  return {.width = limits.defaults.width, .height = limits.defaults.height};
}

// As diffusers' get_timesteps counts.
int first_step_of(int steps, double strength) {
  const double taken = std::min(steps * strength, double(steps));
  const int first = int(std::max(steps - taken, 0.0));
  require(first < steps, "a strength of ", strength, " leaves none of ", steps,
          steps == 1 ? " step" : " steps", ": the picture would be the initial one");
  return first;
}

}  // namespace braid
