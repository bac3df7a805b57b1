// Qwen-Image's ControlNet that fills a picture in: layouts change nothing, what it sees of the
// picture, and what is refused. parity_test.cc checks the numbers against diffusers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "edit_json.h"
#include "message_of.h"
#include "pipeline/deployment/degrees.h"
#include "pipeline/families/description.h"
#include "pipeline/files/found_files.h"
#include "pipeline/picture_requests.h"
#include "pipeline/planner/planner.h"
#include "pipeline/planner/traffic_text.h"
#include "pipeline/proofs/verify.h"
#include "pipeline/request/settings.h"
#include "small_models.h"
#include "temporary_folder.h"

namespace braid::qwen_image_inpaint_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kFilledModel = small_pipeline("qwen-image-inpaint");
const fs::path kFollowingNet = small_pipeline("qwen-image-control") / "controlnet_1";

PipelineOptions filling_with(const Layout& layout = {}, const Memory& memory = {}) {
  auto options = kQwenImage.with(layout, memory);
  options.model = kFilledModel;
  options.controlnets = {kFilledModel / "controlnet_1"};
  return options;
}

// 20 tokens, of which the right half is drawn.
Request filled_request() {
  auto request = kQwenImage.guided;
  request.width = 80;
  request.height = 64;
  request.pictures = {.init = waves(80, 64), .mask = half(80, 64)};
  return request;
}

RequestLimits filled_limits() {
  return open_family(find_model(filling_with()).files)->description().limits;
}

std::string refusal_of_pictures(const PicturesIn& pictures) {
  auto request = filled_request();
  request.pictures = pictures;
  return message_of([&] { settle(request, filled_limits(), {}); });
}

class QwenImageFilledLayouts : public testing::TestWithParam<Layout> {};
INSTANTIATE_TEST_SUITE_P(All, QwenImageFilledLayouts,
                         testing::Values(Layout{.tp = 3}, Layout{.ring = 2},
                                         Layout{.ring = 2, .ring_form = RingForm::kGather},
                                         Layout{.ulysses = 3}, Layout{.pp = 2}, Layout{.cfg = 2},
                                         Layout{.tp = 3, .pp = 2}),
                         [](const auto& info) { return "Nr" + std::to_string(info.index); });

TEST_P(QwenImageFilledLayouts, DrawWhatOneRankDraws) {
  static const auto one = kQwenImage.drawn(filling_with(), filled_request());
  const auto got = kQwenImage.drawn(filling_with(GetParam()), filled_request());
  EXPECT_TRUE(at::equal(got["latents_initial"], one["latents_initial"]));
  EXPECT_LT(relative_error(got["velocity_first"], one["velocity_first"]), 1e-5);
  EXPECT_LT(relative_error(got["latents_final"], one["latents_final"]), 5e-5);
}

TEST_P(QwenImageFilledLayouts, AreProven) {
  if (GetParam().cfg > 1) GTEST_SKIP() << "branches are whole";
  const auto verdict = verify(deploy(filling_with(GetParam())),
                              {.probe = {.width = 80, .height = 64, .max_sequence_length = 21}});
  EXPECT_EQ(verdict.first_divergent(), nullptr);
  EXPECT_EQ(verdict.blocks.front().where, "control.double.0");
}

TEST_P(QwenImageFilledLayouts, MoveWhatIsPredicted) {
  const auto degrees = degrees_of(GetParam());
  auto request = filled_request();
  const Engine engine(filling_with(GetParam()), {});
  if (degrees.cfg == 1) {
    request.guidance = 1;
    request.negative_prompt = std::nullopt;
  }
  const auto facts = engine.generate(request, {}, {.record = RecordTensors::kYes}).facts;
  request.max_sequence_length = int(facts.recording.at("prompt_embeds").size(1));
  const auto job = job_of(deploy(filling_with(GetParam())), request);
  EXPECT_EQ(job.pictures.encoded_pixels, 80 * 64);
  const auto stage = stage_of(job.shape(), share_of(job.shape().num_blocks(), 0, degrees.pp));
  EXPECT_EQ(text_of_traffic(facts.step_traffic),
            text_of_traffic(predict_traffic(job, degrees, 0, stage)));
}

TEST(QwenImageFilled, KeepsItsBitsWhereverItsWeightsAre) {
  const auto resident = kQwenImage.drawn(filling_with(), filled_request());
  for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kLeaf}) {
    const Memory memory{.offload = {.transformer = mode, .text = mode, .vae = mode}};
    const auto got = kQwenImage.drawn(filling_with({}, memory), filled_request());
    EXPECT_TRUE(at::equal(got["latents_final"], resident["latents_final"])) << int(mode);
  }
}

// What the mask hides cannot be told from the result; what it keeps can.
TEST(QwenImageFilled, SeesOnlyWhatTheMaskKeeps) {
  const auto drawn = [](int column) {
    auto request = filled_request();
    if (column >= 0) request.pictures.init->rgb[std::size_t(3 * column)] ^= 0x80;
    return kQwenImage.drawn(filling_with(), request)["latents_final"];
  };
  const auto usual = drawn(-1);
  EXPECT_TRUE(at::equal(drawn(79), usual));
  EXPECT_FALSE(at::equal(drawn(0), usual));
}

// As in the reference, whose generator draws the noise alone: the same as without a picture.
TEST(QwenImageFilled, StartsFromTheNoiseOfItsSeed) {
  auto request = filled_request();
  const auto filled = kQwenImage.drawn(filling_with(), request);
  request.pictures.strength = 1;
  const auto spelled = kQwenImage.drawn(filling_with(), request);
  EXPECT_TRUE(at::equal(spelled["latents_final"], filled["latents_final"]));
  request.pictures = {};
  const auto alone = kQwenImage.drawn(filling_with(), request);
  EXPECT_TRUE(at::equal(alone["latents_initial"], filled["latents_initial"]));
  EXPECT_FALSE(at::equal(alone["velocity_first"], filled["velocity_first"]));
}

// A picture is not followed at a scale of 0, or after its part of the steps.
TEST(QwenImageFilled, FollowsAsItsControlSays) {
  auto request = filled_request();
  const auto drawn = [&](std::vector<ControlPicture> controls) {
    request.pictures.controls = std::move(controls);
    return kQwenImage.drawn(filling_with(), request)["latents_final"];
  };
  const auto usual = drawn({});
  EXPECT_TRUE(at::equal(drawn({{.scale = 1}}), usual));
  EXPECT_GT(relative_error(drawn({{.scale = 0.5}}), usual), 1e-3);
  EXPECT_GT(relative_error(drawn({{.to = 0.5}}), usual), 1e-3);
  const auto unfollowed = drawn({{.scale = 0}});
  request.pictures = {};
  EXPECT_TRUE(at::equal(drawn({}), unfollowed));
}

TEST(QwenImageFilled, StartsFromThePictureBelowAStrengthOfOne) {
  auto request = filled_request();
  request.steps = 4;
  request.pictures.strength = 0.5;
  const auto settings = settle(request, filled_limits(), {});
  EXPECT_EQ(settings.first_step, 2);
  ASSERT_EQ(settings.followed.size(), 1u);
  const auto begun = kQwenImage.drawn(filling_with(), request);
  request.pictures.strength.reset();
  const auto settled = settle(request, filled_limits(), {});
  EXPECT_EQ(settled.first_step, 0);
  EXPECT_EQ(settled.strength, std::nullopt);
  const auto anew = kQwenImage.drawn(filling_with(), request);
  EXPECT_GT(relative_error(begun["latents_initial"], anew["latents_initial"]), 0.1);
}

TEST(QwenImageFilled, TakesLatentsOfItsOwn) {
  auto request = filled_request();
  const auto noise = kQwenImage.drawn(filling_with(), request)["latents_initial"].contiguous();
  const auto* const begin = noise.const_data_ptr<float>();
  request.latents = Latents{.shape = noise.sizes().vec(), .values = {begin, begin + noise.numel()}};
  const auto got = kQwenImage.drawn(filling_with(), request);
  EXPECT_TRUE(at::equal(got["latents_initial"], noise));
  request.pictures.strength = 0.9;
  EXPECT_THAT(message_of([&] { settle(request, filled_limits(), {}); }),
              HasSubstr("both initial latents and an initial picture were given"));
}

// The region around the mask is drawn like a whole picture, and pasted back.
TEST(QwenImageFilled, FillsARegionIn) {
  auto request = filled_request();
  request.pictures = {.init = waves(160, 128), .mask = half(160, 128), .padding_crop = 4};
  const auto drawn = kQwenImage.drawn(filling_with(), request);
  ASSERT_EQ(drawn.pictures.size(), 1u);
  EXPECT_EQ(drawn.pictures.front().width, 160);
  const auto& rgb = drawn.pictures.front().rgb;
  EXPECT_EQ(rgb[0], request.pictures.init->rgb[0]) << "black areas are kept";
}

TEST(QwenImageFilled, IsRefusedWithoutItsPictures) {
  const auto picture = waves(80, 64), mask = half(80, 64);
  EXPECT_THAT(refusal_of_pictures({.init = picture}),
              testing::EndsWith("the ControlNet fills the initial picture in: it needs a mask"));
  EXPECT_THAT(refusal_of_pictures({.mask = mask}), HasSubstr("a mask needs an initial picture"));
  EXPECT_THAT(refusal_of_pictures({.controls = {{.scale = 0.5}}}),
              HasSubstr("fills the initial picture in: there is none"));
  EXPECT_THAT(
      refusal_of_pictures({.init = picture, .mask = mask, .controls = {{.picture = picture}}}),
      HasSubstr("fills the initial picture in: it follows no control picture"));
  EXPECT_THAT(refusal_of_pictures({.init = picture, .mask = mask, .controls = {{}, {}}}),
              HasSubstr("it follows no control picture"));
  EXPECT_THAT(refusal_of_pictures({.init = picture, .mask = mask, .controls = {{.mode = 1}}}),
              HasSubstr("its mode is 0, not 1"));
  EXPECT_THAT(
      refusal_of_pictures({.init = picture, .mask = mask, .controls = {{.from = 1, .to = 0}}}),
      HasSubstr("end no earlier than it begins, it is from 1 to 0"));
  EXPECT_EQ(refusal_of_pictures({}), "");
}

// Those that follow control pictures have pixels to follow.
TEST(QwenImageFilled, IsNotWhatOtherNetsDo) {
  auto options = filling_with();
  options.controlnets = {kFollowingNet};
  const auto limits = open_family(find_model(options).files)->description().limits;
  auto request = filled_request();
  request.pictures.controls = {{.scale = 0.5}};
  EXPECT_THAT(message_of([&] { settle(request, limits, {}); }),
              HasSubstr("the ControlNet needs a control picture to follow: it fills none in"));
  EXPECT_FALSE(
      info_of(open_family(find_model(options).files)->description()).pictures.net_fills_in);
  EXPECT_TRUE(
      info_of(open_family(find_model(filling_with()).files)->description()).pictures.net_fills_in);
}

TEST(QwenImageFilled, StandsAlone) {
  auto options = filling_with();
  options.controlnets.push_back(kFollowingNet);
  EXPECT_THAT(message_of([&] { (void)open_family(find_model(options).files); }),
              HasSubstr("fills pictures in: it cannot be used together with others"));
}

TEST(QwenImageFilled, HasAMaskForEachLatentOfAToken) {
  const TemporaryFolder scratch;
  auto options = filling_with();
  options.controlnets = {scratch / "net"};
  fs::copy(kFilledModel / "controlnet_1", scratch / "net");
  const auto set_channels = [&](int count) {
    edit_json(scratch / "net/config.json",
              [&](Json& json) { json["extra_condition_channels"] = count; });
  };
  set_channels(3);
  EXPECT_THAT(
      message_of([&] { (void)open_family(find_model(options).files); }),
      HasSubstr("'extra_condition_channels' should be 0, or 4 for a ControlNet that fills"));
  set_channels(0);
  EXPECT_THAT(message_of([&] { Engine(options, {}); }), HasSubstr("controlnet_x_embedder"));
}

}  // namespace braid::qwen_image_inpaint_test
