// Which field of a request each refusal is about, as the server tells its clients.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/request_error.h"
#include "pictures.h"
#include "pipeline/request/settings.h"
#include "pipeline/sampling/grids.h"
#include "pipeline/sampling/schedule.h"

namespace braid::named_fields_test {

using Taken = PicturesTaken;

template <class Body>
std::string field_of(Body body) {
  try {
    body();
  } catch (const RequestError& error) {
    return error.field();
  }
  return "";
}

struct Case {
  const char* field;
  std::function<void(Request&, RequestLimits&)> make_wrong;
};

Pixels white(int width = 32, int height = 32) { return grey_picture(width, height, 255); }

// Refusals of all requests and of sampling, in the order of the sources, not those of families;
// those about what no field of the server can have are left out.
const Case kCases[] = {
    {"prompt", [](auto& r, auto&) { r.prompts = {"\xff"}; }},
    {"prompt_2", [](auto& r, auto&) { r.prompts_2 = {"b"}; }},
    {"prompt_2",
     [](auto& r, auto& l) {
       l.num_texts = 2;
       r.prompts_2 = {"\xff"};
     }},
    {"negative_prompt", [](auto& r, auto&) { r.negative_prompt = "\xff"; }},
    {"prompt",
     [](auto& r, auto& l) {
       l.empty_prompt = EmptyPrompt::kRefused;
       r.prompts = {""};
     }},
    {"boxes", [](auto& r, auto&) { r.boxes = "[]"; }},
    {"steps", [](auto& r, auto&) { r.steps = 0; }},
    {"frames",
     [](auto& r, auto& l) {
       l.frames = {.most = 4, .kind = FrameKind::kLayer};
       r.frames = 2;
     }},
    {"layers",
     [](auto& r, auto& l) {
       l.frames = {.most = 4, .kind = FrameKind::kLayer};
       r.layers = 9;
     }},
    {"layers", [](auto& r, auto&) { r.layers = 2; }},
    {"frames", [](auto& r, auto&) { r.frames = 2; }},
    {"frames",
     [](auto& r, auto& l) {
       l.frames.most = 4;
       r.frames = 9;
     }},
    {"width", [](auto& r, auto&) { r.width = 1 << 20; }},
    {"height", [](auto& r, auto&) { r.height = 0; }},
    {"height",
     [](auto& r, auto& l) {
       l.size_rounding = SizeRounding::kNever;
       r.height = 33;
     }},
    {"resolution",
     [](auto& r, auto& l) {
       l.pictures.resolutions = {{.side = 640, .multiple = 32}};
       r.pictures.resolution = 640;
       r.width = 64;
     }},
    {"max_sequence_length", [](auto& r, auto&) { r.max_sequence_length = 0; }},
    {"n", [](auto& r, auto&) { r.num_images = 0; }},
    {"negative_prompt_2",
     [](auto& r, auto& l) {
       l.num_texts = 2;
       r.negative_prompt_2 = "b";
     }},
    {"negative_prompt",
     [](auto& r, auto& l) {
       l.guidance = GuidanceKind::kNone;
       r.negative_prompt = "b";
     }},
    {"negative_prompt",
     [](auto& r, auto& l) {
       l.guidance = GuidanceKind::kEmbedded;
       r.negative_prompt = "b";
     }},
    {"true_cfg",
     [](auto& r, auto& l) {
       l.guidance = GuidanceKind::kTrue;
       r.true_cfg = 2;
     }},
    {"guidance", [](auto& r, auto&) { r.guidance = std::numeric_limits<double>::infinity(); }},
    {"guidance_rescale", [](auto& r, auto&) { r.guidance_rescale = 2; }},
    {"cfg_norm_cap", [](auto& r, auto&) { r.cfg_norm_cap = -1; }},
    {"cfg_normalize", [](auto& r, auto&) { r.cfg_normalize = true; }},
    {"cfg_until", [](auto& r, auto&) { r.cfg_until = 2; }},
    {"sigmas", [](auto& r, auto&) { r.sampling.sigmas = {0.5, 0.7}; }},
    {"base_sigmas", [](auto& r, auto&) { r.sampling.base_sigmas = {2}; }},
    {"shift", [](auto& r, auto&) { r.sampling.shift = -1; }},
    {"shift",
     [](auto& r, auto&) {
       r.sampling.sigmas = {1, 0.5};
       r.sampling.shift = 3;
     }},
    {"schedule",
     [](auto& r, auto&) {
       r.sampling.sigmas = {1, 0.5};
       r.sampling.base_sigmas = {1, 0.5};
     }},
    {"sampler",
     [](auto& r, auto& l) {
       l.sampling.is_inverted = true;
       r.sampling.sampler = Sampler::kErSde;
     }},
    {"schedule",
     [](auto& r, auto& l) {
       l.sampling.is_inverted = true;
       r.sampling.sigmas = {1, 0.5};
     }},
    {"init", [](auto& r, auto&) { r.pictures.init = white(); }},
    {"init",
     [](auto& r, auto& l) {
       l.pictures.init = Taken::Init::kMaybe;
       r.pictures.init = white(0, 0);
     }},
    {"init",
     [](auto& r, auto& l) {
       l.pictures.init = Taken::Init::kWithMask;
       r.pictures.init = white();
     }},
    {"init",
     [](auto& r, auto& l) {
       l.pictures.init = Taken::Init::kWithMask;
       l.pictures.nets_follow = Taken::NetsFollow::kMasked;
       r.pictures.init = white();
     }},
    {"reference", [](auto& r, auto&) { r.pictures.references = {white()}; }},
    {"reference",
     [](auto& r, auto& l) {
       l.pictures.most_references = 1;
       r.pictures.references = {white(), white()};
     }},
    {"reference_scale",
     [](auto& r, auto& l) {
       l.pictures.most_references = 1;
       r.pictures.references = {white()};
       r.pictures.reference_scales = {2};
     }},
    {"control", [](auto& r, auto&) { r.pictures.controls = {{.picture = white()}}; }},
    {"control",
     [](auto& r, auto& l) {
       l.pictures.extra_channels = Taken::ExtraChannels::kControl;
       r.pictures.controls = {{.picture = white()}, {.picture = white()}};
     }},
    {"control_scale",
     [](auto& r, auto& l) {
       l.pictures.extra_channels = Taken::ExtraChannels::kControl;
       r.pictures.controls = {{.picture = white(), .scale = 2}};
     }},
    {"control_mode",
     [](auto& r, auto& l) {
       l.pictures.controlnet_modes = {0};
       r.pictures.controls = {{.picture = white(), .mode = 3}};
     }},
    {"control_mode",
     [](auto& r, auto& l) {
       l.pictures.controlnet_modes = {2};
       r.pictures.controls = {{.picture = white(), .mode = 3}};
     }},
    {"control_from",
     [](auto& r, auto& l) {
       l.pictures.controlnet_modes = {0};
       r.pictures.controls = {{.picture = white(), .from = 0.5, .to = 0.2}};
     }},
    {"control_scale",
     [](auto& r, auto& l) {
       l.pictures.controlnet_modes = {0};
       r.pictures.controls = {{.picture = white(), .scale = 1e300}};
     }},
    {"resolution", [](auto& r, auto&) { r.pictures.resolution = 640; }},
    {"mask", [](auto& r, auto&) { r.pictures.mask = white(); }},
    {"mask",
     [](auto& r, auto& l) {
       l.pictures.init = Taken::Init::kMaybe;
       r.pictures.init = r.pictures.mask = white();
       std::ranges::fill(r.pictures.mask->rgb, 0);
       r.pictures.padding_crop = 8;
     }},
    {"mask_blur", [](auto& r, auto&) { r.pictures.mask_blur = 2; }},
    {"mask_blur",
     [](auto& r, auto& l) {
       l.pictures.init = Taken::Init::kMaybe;
       r.pictures.init = r.pictures.mask = white();
       r.pictures.mask_blur = -1;
     }},
    {"padding_crop", [](auto& r, auto&) { r.pictures.padding_crop = 8; }},
    {"padding_crop",
     [](auto& r, auto& l) {
       l.pictures.init = Taken::Init::kMaybe;
       r.pictures.init = r.pictures.mask = white();
       r.pictures.padding_crop = 1 << 20;
     }},
    {"strength", [](auto& r, auto&) { r.pictures.strength = 0.5; }},
    {"strength",
     [](auto& r, auto& l) {
       l.pictures.init = Taken::Init::kMaybe;
       r.pictures.init = white();
       r.pictures.strength = 2;
     }},
    {"strength",
     [](auto& r, auto& l) {
       l.pictures.init = Taken::Init::kMaybe;
       r.pictures.init = white();
       r.pictures.strength = 0;
     }},
    {"true_cfg", [](auto& r, auto&) { r.true_cfg = -1; }},
    {"control",
     [](auto&, auto& l) { l.pictures.extra_channels = Taken::ExtraChannels::kControl; }},
    {"init", [](auto&, auto& l) { l.pictures.extra_channels = Taken::ExtraChannels::kMasked; }},
    {"reference",
     [](auto&, auto& l) { l.pictures.most_references = l.pictures.least_references = 1; }},
    {"resolution",
     [](auto& r, auto& l) {
       l.pictures.resolutions = {{.side = 640, .multiple = 32}};
       r.pictures.resolution = 123;
     }},
    {"reference_scale",
     [](auto& r, auto& l) {
       l.pictures.most_references = 1;
       l.pictures.references = Taken::References::kBehindPrompt;
       r.pictures.references = {white()};
       r.pictures.reference_scales = {1, 1};
     }},
    {"control",
     [](auto& r, auto& l) {
       l.pictures.controlnet_modes = {0, 0, 0};
       r.pictures.controls = {{.picture = white()}};
     }},
    {"mask", [](auto& r, auto& l) {
       l.pictures.init = Taken::Init::kMaybe;
       r.pictures.init = white();
       r.pictures.mask = white(16, 16);
     }}};

TEST(NamedFields, AreThoseOfTheEnginesSentences) {
  int number = 0;
  for (const auto& [field, make_wrong] : kCases) {
    SCOPED_TRACE(number++);
    Request request{.prompts = {"a"}};
    RequestLimits limits;
    make_wrong(request, limits);
    EXPECT_EQ(field_of([&] { (void)settle(request, limits, [](const std::string&) {}); }), field);
  }
}

TEST(NamedFields, AreThoseOfTheSchedulersSentences) {
  EXPECT_EQ(field_of([] { (void)make_schedule({.shift_terminal = 0.1}, 1, 64); }), "steps");
  EXPECT_EQ(field_of([] {
              (void)make_grid({.shift = 1e30}, {.shift = 1},
                              {.steps = 4, .image_tokens = 64, .mu = 1});
            }),
            "shift");
  EXPECT_EQ(field_of([] {
              (void)begun_below_one(
                  {.sigmas = {1, std::nextafter(1.0F, 0.0F), 0}, .timesteps = {1000, 999}}, {}, 0);
            }),
            "sampler");
}

}  // namespace braid::named_fields_test
