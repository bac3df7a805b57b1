#include "pipeline/families/flux2/references.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/request_error.h"
#include "image/resize.h"

namespace braid {
namespace {

constexpr int kMostReferences = 10;  // that FLUX.2-dev was trained with
constexpr int kShortestSide = 64, kLongestRatio = 8;
constexpr std::int64_t kMostPixels = 1024 * 1024;
constexpr double kStrength = 0.8;  // from Flux2KleinInpaintPipeline

void check_reference(const Pixels& p) {
  require_field("reference", p.width >= kShortestSide && p.height >= kShortestSide,
                "a reference should have at least ", kShortestSide, " pixels per side, one has ",
                p.width, "x", p.height);
  require_field(
      "reference",
      double(std::max(p.width, p.height)) <= double(kLongestRatio) * std::min(p.width, p.height),
      "a reference should be at most ", kLongestRatio, " times as long as wide, one has ", p.width,
      "x", p.height);
}

}  // namespace

PicturesTaken flux2_pictures(Flux2Kind kind, int multiple) {
  using Taken = PicturesTaken;
  const bool is_klein = kind == Flux2Kind::kKleinDistilled || kind == Flux2Kind::kKleinBase;
  const bool is_kept = kind == Flux2Kind::kKleinKept;
  return {
      .init = is_klein ? Taken::Init::kWithMask : Taken::Init::kNever,
      .init_as = Taken::InitAs::kReference,
      .most_init_pixels = kMostPixels,
      .strength_with_mask = kStrength,
      .most_references = kMostReferences,
      .fit_reference =
          [=](const Pixels& picture) {
            check_reference(picture);
            return middle_of(with_at_most(picture, kMostPixels), multiple);
          },
      .reference_use = is_kept ? Taken::ReferenceUse::kOnce : Taken::ReferenceUse::kInEveryStep};
}

// References are as clean as pictures at timestep 0.
DenoiserInput flux2_references_alone(const std::vector<Tokens>& references,
                                     std::int64_t text_width) {
  std::vector<Tensor> tokens, ids;
  for (const auto& reference : references) {
    tokens.push_back(reference.x_BLC);
    ids.push_back(reference.ids_LA);
  }
  const auto all_BLC = at::cat(tokens, 1), ids_LA = at::cat(ids);
  return {
      .noise = {.x_BLC = all_BLC, .ids_LA = ids_LA},
      .text = {.x_BLC = all_BLC.new_empty({1, 0, text_width}), .ids_LA = ids_LA.narrow(0, 0, 0)},
      .timestep_B = all_BLC.new_zeros({1})};
}

}  // namespace braid
