// Requests with pictures: what is refused, what follows from a strength, that layouts change
// nothing.
#include <gmock/gmock.h>

#include "message_of.h"
#include "pipeline/engine.h"
#include "pipeline/families/flux/kinds.h"
#include "pipeline/families/flux2/references.h"
#include "pipeline/pictures/check_pictures.h"

namespace braid::pictures_test {

using testing::HasSubstr;

Pixels waves(int width, int height) {
  Pixels picture{width, height, {}};
  for (int i = 0; i < width * height * 3; ++i)
    picture.rgb.push_back(std::uint8_t(i * 7 % 251 + i % 5));
  return picture;
}

// White in the right half.
Pixels half(int width, int height) {
  Pixels mask{width, height, {}};
  for (int i = 0; i < width * height; ++i)
    mask.rgb.insert(mask.rgb.end(), 3, i % width < width / 2 ? 0 : 255);
  return mask;
}

const PicturesTaken kStarts{.init = PicturesTaken::Init::kMaybe};

std::string refusal(const PicturesIn& pictures, const PicturesTaken& taken = kStarts) {
  return message_of([&] { check_pictures({.pictures = pictures}, taken); });
}

TEST(Pictures, AreRefusedWhereTheModelTakesNone) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_THAT(refusal({.init = waves(4, 4)}, {}), HasSubstr("it takes no initial picture"));
  EXPECT_THAT(refusal({.references = {waves(4, 4)}}), HasSubstr("looks at no references, 1 was"));
  EXPECT_THAT(refusal({.references = {waves(4, 4), waves(4, 4)}}, {.most_references = 1}),
              HasSubstr("looks at 1 reference at most, 2 were given"));
  EXPECT_THAT(refusal({.control = waves(4, 4)}), HasSubstr("follows no control picture"));
}

TEST(Pictures, AreRefusedWhereTheModelNeedsMore) {
  const PicturesTaken fills{.init = PicturesTaken::Init::kMaybe,
                            .beside = PicturesTaken::Beside::kMasked};
  EXPECT_THAT(refusal({}, fills), HasSubstr("needs an initial picture and a mask"));
  EXPECT_THAT(refusal({.init = waves(4, 4)}, fills), HasSubstr("needs an initial picture and"));
  EXPECT_EQ(refusal({.init = waves(4, 4), .mask = half(4, 4)}, fills), "");
  EXPECT_THAT(refusal({}, {.beside = PicturesTaken::Beside::kControl}),
              HasSubstr("needs a control picture"));
}

TEST(Pictures, AreRefusedWhereTheyDoNotFit) {
  EXPECT_THAT(refusal({.mask = half(4, 4)}), HasSubstr("a mask needs an initial picture"));
  EXPECT_THAT(refusal({.strength = 0.5}), HasSubstr("a strength needs an initial picture"));
  EXPECT_THAT(refusal({.init = waves(4, 4), .mask = half(4, 5)}),
              HasSubstr("the size of the initial picture, 4x4, it has 4x5"));
  for (const double strength : {-0.1, 1.1, double(NAN)})
    EXPECT_THAT(refusal({.init = waves(4, 4), .strength = strength}),
                HasSubstr("the strength should lie between 0 and 1, it is "));
  EXPECT_THAT(refusal({.init = Pixels{4, 4, {}}}), HasSubstr("should have 48 values, it has 0"));
  EXPECT_THAT(refusal({.init = Pixels{0, 4, {}}}), HasSubstr("should have pixels, it has 0x4"));
  const Request both{.latents = Latents{}, .pictures = {.init = waves(4, 4)}};
  EXPECT_THAT(message_of([&] { check_pictures(both, kStarts); }), HasSubstr("give one of them"));
}

// int(N - min(N s, N)), as the reference counts.
TEST(Pictures, AreDrawnFromTheStepOfTheirStrength) {
  EXPECT_EQ(first_step_of(4, 1), 0);
  EXPECT_EQ(first_step_of(28, 0.6), 11);
  EXPECT_EQ(first_step_of(5, 0.5), 2);
  EXPECT_EQ(first_step_of(10, 0.7), 3);
  EXPECT_EQ(first_step_of(7, 0.15), 5);
  EXPECT_EQ(message_of([] { first_step_of(4, 0); }),
            "a strength of 0 leaves none of 4 steps: the picture would be the initial one");
}

TEST(Pictures, GiveTheSizeWhereNoneWasAsked) {
  const RequestLimits limits{.defaults = {.width = 77, .height = 55}, .largest_side = 100};
  const auto size = [&](const PicturesIn& in) {
    const auto s = size_without_request(in, limits);
    return std::pair(s.width, s.height);
  };
  EXPECT_EQ(size({}), std::pair(77, 55));
  EXPECT_EQ(size({.init = waves(40, 30)}), std::pair(40, 30));
  EXPECT_EQ(size({.init = waves(400, 200)}), std::pair(100, 50));
  EXPECT_EQ(size({.init = waves(400, 2)}), std::pair(100, 16));
}

// Sizes as diffusers' Flux2ImageProcessor and FluxKontextPipeline choose them.
TEST(Pictures, OfReferencesHaveTheFamilysSizes) {
  const auto flux2 = flux2_pictures(16);
  const auto sides = [](const PicturesTaken& taken, int width, int height) {
    const auto fitted = taken.fit_reference(waves(width, height));
    return std::pair(fitted.width, fitted.height);
  };
  EXPECT_EQ(sides(flux2, 75, 66), std::pair(64, 64));
  EXPECT_EQ(sides(flux2, 1300, 900), std::pair(1216, 848));
  EXPECT_THAT(message_of([&] { sides(flux2, 63, 64); }), HasSubstr("64 pixels a side"));
  EXPECT_THAT(message_of([&] { sides(flux2, 64, 513); }), HasSubstr("8 times as long as wide"));
  const auto middle = flux2.fit_reference(waves(75, 66));
  EXPECT_EQ(middle.rgb.front(), waves(75, 66).rgb[(1 * 75 + 5) * 3]);
  const auto kontext = flux_pictures(FluxKind::kKontext, {});
  EXPECT_EQ(sides(kontext, 100, 100), std::pair(1024, 1024));
  EXPECT_EQ(sides(kontext, 90, 60), std::pair(1328, 800));
  EXPECT_EQ(sides(kontext, 10, 200), std::pair(672, 1568));
  EXPECT_EQ(sides(kontext, 60, 90), std::pair(800, 1328));
}

// Under each layout the bits that one rank draws, but where sums are in another order.
class PictureLayouts : public testing::TestWithParam<Layout> {};

Request request_with(PicturesIn pictures) {
  return {.prompts = {"a red circle"},
          .negative_prompt = "blurry",
          .true_cfg = 2,
          .width = 64,
          .height = 48,
          .steps = 2,
          .num_images = 2,
          .pictures = std::move(pictures)};
}

Recording recording_of(const std::string& model, const Request& request, const Layout& layout) {
  PipelineOptions options{.model = std::filesystem::path(BRAID_SOURCE_DIR) / model,
                          .dtype = Dtype::kFloat32,
                          .layout = layout};
  const Engine engine(options, {});
  Recording recording;
  engine.generate(request, {}, &recording);
  return recording;
}

void expect_same(const std::string& model, const Request& request, const Layout& layout) {
  const auto one = recording_of(model, request, {}), many = recording_of(model, request, layout);
  EXPECT_TRUE(at::equal(one.at("latents_initial"), many.at("latents_initial")));
  const auto& want = one.at("latents_final");
  const auto error = (many.at("latents_final") - want).abs().max() / want.abs().max();
  EXPECT_LT(error.item<double>(), 1e-5);
}

TEST_P(PictureLayouts, DrawWhatOneRankDraws) {
  expect_same("models/demo", request_with({.init = waves(50, 40), .mask = half(50, 40)}),
              GetParam());
  auto looking = request_with({.references = {waves(64, 80), waves(70, 64)}});
  looking.true_cfg = 1;
  looking.guidance = 3;
  if (GetParam().tp * GetParam().ulysses == 1)  // it has 5 heads
    expect_same("tests/data/parity/klein-base/model", looking, GetParam());
}

TEST_P(PictureLayouts, FillAsOneRankFills) {
  auto request = request_with({.init = waves(50, 40), .mask = half(50, 40)});
  request.negative_prompt = {};
  request.true_cfg = 1;
  if (GetParam().cfg == 1) expect_same("tests/data/parity/fill/model", request, GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, PictureLayouts,
                         testing::Values(Layout{.tp = 2}, Layout{.ring = 2}, Layout{.ulysses = 2},
                                         Layout{.cfg = 2}, Layout{.dp = 2},
                                         Layout{.layer_split = 2}),
                         [](const auto& info) { return "layout" + std::to_string(info.index); });

}  // namespace braid::pictures_test
