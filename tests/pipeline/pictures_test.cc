// Requests with pictures: what is refused, what follows from a strength; layouts change nothing.
#include <gmock/gmock.h>

#include "picture_requests.h"
#include "pictures.h"
#include "pipeline/families/flux/kinds.h"
#include "pipeline/families/flux2/references.h"
#include "pipeline/pictures/prepared.h"

namespace braid::pictures_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Pictures, AreRefusedWhereTheModelTakesNone) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_THAT(refusal({.init = waves(4, 4)}, {}), HasSubstr("it takes no initial picture"));
  EXPECT_THAT(refusal({.references = {waves(4, 4)}}), HasSubstr("looks at no references, 1 was"));
  EXPECT_THAT(refusal({.references = {waves(4, 4), waves(4, 4)}}, {.most_references = 1}),
              HasSubstr("looks at 1 reference at most, 2 were given"));
  EXPECT_THAT(refusal({.controls = {{.picture = waves(4, 4)}}}),
              HasSubstr("follows no control picture"));
}

TEST(Pictures, AreRefusedWhereTheModelNeedsMore) {
  const PicturesTaken fills{.init = PicturesTaken::Init::kMaybe,
                            .extra_channels = PicturesTaken::ExtraChannels::kMasked};
  EXPECT_THAT(refusal({}, fills), HasSubstr("needs an initial picture and a mask"));
  EXPECT_THAT(refusal({.init = waves(4, 4)}, fills), HasSubstr("needs an initial picture and"));
  EXPECT_EQ(refusal({.init = waves(4, 4), .mask = half(4, 4)}, fills), "");
  EXPECT_THAT(refusal({.init = waves(4, 4)}, {.init = PicturesTaken::Init::kWithMask}),
              HasSubstr("only to draw a part of it anew: it needs a mask"));
  EXPECT_THAT(refusal({}, {.extra_channels = PicturesTaken::ExtraChannels::kControl}),
              HasSubstr("needs a control picture"));
}

// Servers choose by it what becomes of a picture without a mask.
TEST(Pictures, ToStartFromNeedAMaskWhereTheModelSaysSo) {
  const auto needs_mask = [](PicturesTaken taken) {
    Description description;
    description.limits.pictures = std::move(taken);
    return info_of(description).pictures.init_needs_mask;
  };
  EXPECT_TRUE(needs_mask(flux_pictures(FluxKind::kKontext, {})));
  EXPECT_TRUE(needs_mask(flux2_pictures(Flux2Kind::kKleinBase, 16)));
  EXPECT_FALSE(needs_mask(flux2_pictures(Flux2Kind::kDev, 16))) << "it starts from noise alone";
  EXPECT_FALSE(needs_mask(flux_pictures(FluxKind::kPlain, {})));
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
  for (const double blur : {-1.0, 1001.0, double(NAN)})
    EXPECT_THAT(refusal({.init = waves(4, 4), .mask = half(4, 4), .mask_blur = blur}),
                HasSubstr("the blur of the mask should lie between 0 and 1000 pixels, it is "));
  EXPECT_THAT(refusal({.init = waves(4, 4), .mask_blur = 1}), HasSubstr("blur of a mask needs a"));
  EXPECT_THAT(refusal({.init = waves(4, 4), .padding_crop = 1}), HasSubstr("needs a mask"));
  EXPECT_THAT(refusal({.init = waves(4, 4), .mask = half(4, 4), .padding_crop = -1}),
              HasSubstr("the padding around the mask should lie between 0 and 16384 pixels"));
  const auto black = grey_picture(4, 4);
  EXPECT_THAT(refusal({.init = waves(4, 4), .mask = black, .padding_crop = 1}),
              HasSubstr("the mask is black"));
  const Request both{.latents = Latents{}, .pictures = {.init = waves(4, 4)}};
  EXPECT_THAT(message_of([&] { check_pictures(both, kStarts); }), HasSubstr("give one of them"));
}

// White is drawn from 0.5 on, once the mask is blurred and resized.
TEST(Pictures, AreWarnedOfWhereNothingIsRedrawn) {
  Settings settings;
  settings.width = settings.height = 16;
  const auto warnings_of = [&](int level, double blur = 0) {
    std::vector<std::string> warnings;
    auto mask = grey_picture(16, 16);
    std::fill_n(mask.rgb.begin(), 3 * 8, std::uint8_t(level));  // half a line
    const PicturesIn in{.init = waves(16, 16), .mask = mask, .mask_blur = blur};
    (void)prepare_pictures(in, settings, kStarts,
                           [&](const std::string& one) { warnings.push_back(one); });
    return warnings;
  };
  EXPECT_THAT(warnings_of(128), IsEmpty());
  EXPECT_THAT(warnings_of(0), ElementsAre("the mask is black: nothing of the picture is redrawn"));
  EXPECT_THAT(warnings_of(127), ElementsAre(HasSubstr("nowhere as bright as 128: nothing")));
  EXPECT_THAT(warnings_of(255, 8), ElementsAre(HasSubstr("nowhere as bright as 128: nothing")));
}

// int(N - min(N s, N)), as in the reference.
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
  const RequestLimits fewer{.pictures = {.most_init_pixels = 1024 * 1024}};
  const auto shrunk = size_without_request({.init = waves(1300, 900)}, fewer);
  EXPECT_EQ(std::pair(shrunk.width, shrunk.height), std::pair(1230, 852));
}

// FluxKontextInpaintPipeline chooses among the sizes that the model was trained for.
TEST(Pictures, ThatKontextFillsInHaveASizeThatItWasTrainedFor) {
  const RequestLimits limits{.pictures = flux_pictures(FluxKind::kKontext, {})};
  const auto size = [&](int width, int height) {
    const auto s =
        size_without_request({.init = waves(width, height), .mask = half(width, height)}, limits);
    return std::pair(s.width, s.height);
  };
  EXPECT_EQ(size(64, 48), std::pair(1184, 880));
  EXPECT_EQ(size(90, 60), std::pair(1328, 800));
  EXPECT_EQ(size(10, 200), std::pair(672, 1568));
  const auto drawn = settle({.prompts = {"a"},
                             .width = 64,
                             .height = 48,
                             .pictures = {.init = waves(90, 60), .mask = half(90, 60)}},
                            limits, {});
  EXPECT_EQ(std::pair(drawn.width, drawn.height), std::pair(64, 48)) << "a size asked for is kept";
}

// Sizes as diffusers' Flux2ImageProcessor and FluxKontextPipeline choose them.
TEST(Pictures, OfReferencesHaveTheFamilysSizes) {
  const auto flux2 = flux2_pictures(Flux2Kind::kDev, 16);
  const auto sides = [](const PicturesTaken& taken, int width, int height) {
    const auto fitted = taken.fit_reference(waves(width, height));
    return std::pair(fitted.width, fitted.height);
  };
  EXPECT_EQ(sides(flux2, 75, 66), std::pair(64, 64));
  EXPECT_EQ(sides(flux2, 1300, 900), std::pair(1216, 848));
  EXPECT_THAT(message_of([&] { sides(flux2, 63, 64); }), HasSubstr("64 pixels per side"));
  EXPECT_THAT(message_of([&] { sides(flux2, 64, 513); }), HasSubstr("8 times as long as wide"));
  const auto middle = flux2.fit_reference(waves(75, 66));
  EXPECT_EQ(middle.rgb.front(), waves(75, 66).rgb[(1 * 75 + 5) * 3]);
  const auto kontext = flux_pictures(FluxKind::kKontext, {});
  EXPECT_EQ(sides(kontext, 100, 100), std::pair(1024, 1024));
  EXPECT_EQ(sides(kontext, 90, 60), std::pair(1328, 800));
  EXPECT_EQ(sides(kontext, 10, 200), std::pair(672, 1568));
  EXPECT_EQ(sides(kontext, 60, 90), std::pair(800, 1328));
}

// Each layout draws the bits of one rank, except where sums are added in another order.
class PictureLayouts : public testing::TestWithParam<Layout> {};

// Each model always gets the same request.
void expect_same(const std::string& model, const Request& request, const Layout& layout) {
  static std::map<std::string, Recording> of_one_rank;
  if (!of_one_rank.contains(model)) of_one_rank[model] = recording_of(model, request, {});
  expect_near(of_one_rank.at(model), recording_of(model, request, layout));
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

TEST_P(PictureLayouts, KontextFillsInAsOneRankDoes) {
  const auto request = request_with({.init = waves(64, 48), .mask = half(64, 48)});
  expect_same("tests/data/parity/kontext-mask/model", request, GetParam());
}

const auto kNumber = [](const auto& info) { return "layout" + std::to_string(info.index); };
INSTANTIATE_TEST_SUITE_P(All, PictureLayouts,
                         testing::Values(Layout{.tp = 2}, Layout{.ulysses = 2}), kNumber);
INSTANTIATE_TEST_SUITE_P(Slow, PictureLayouts,
                         testing::Values(Layout{.ring = 2}, Layout{.cfg = 2}, Layout{.dp = 2},
                                         Layout{.pp = 2}),
                         kNumber);

// References seen once, on one rank and on several; 3 heads.
class KeptReferences : public testing::TestWithParam<Layout> {};

const char* const kKept = "tests/data/parity/klein-kept/model";

Request request_with_kept() {
  auto request = request_with({.references = {waves(64, 80), waves(70, 64)}});
  request.negative_prompt = {};
  request.true_cfg = 1;
  request.steps = 3;
  request.batch_size = 2;
  return request;
}

TEST_P(KeptReferences, AreWhatOneRankKeeps) { expect_same(kKept, request_with_kept(), GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, KeptReferences,
                         testing::Values(Layout{.tp = 3}, Layout{.ring = 2}, Layout{.ulysses = 2},
                                         Layout{.pp = 2},
                                         Layout{.ring = 2, .ring_form = RingForm::kGather}),
                         [](const auto& info) { return "layout" + std::to_string(info.index); });

Tensor latents_of(const PipelineOptions& options, const Request& request) {
  return Engine(options, {})
      .generate(request, {}, {.record = RecordTensors::kYes})
      .facts.recording.at("latents_final");
}

PipelineOptions options_of(const std::string& model) {
  return {.model = std::filesystem::path(BRAID_SOURCE_DIR) / model,
          .dtype = Dtype::kFloat32,
          .threads = 1};
}

// A cache that skips nothing: the steps run in four parts that each count their own blocks.
TEST(Pictures, AreTheSameWithACacheThatLeavesNothingOut) {
  auto cached = options_of(kKept);
  cached.cache = {.mode = CacheMode::kFirstBlock, .threshold = 0};
  auto request = request_with_kept();
  request.batch_size = 1;
  EXPECT_TRUE(at::equal(latents_of(cached, request), latents_of(options_of(kKept), request)));
}

TEST(Pictures, OfAnotherRequestAreNotSeenAnymore) {
  const Engine engine(options_of(kKept), {});
  auto without = request_with_kept();
  without.pictures.references.clear();
  const auto latents = [&] {
    return engine.generate(without, {}, {.record = RecordTensors::kYes})
        .facts.recording.at("latents_final");
  };
  const auto first = latents();
  engine.generate(request_with_kept(), {});
  const auto second = latents();
  EXPECT_TRUE(at::equal(first, second));
}

// Then the model sees them in every step.
TEST(Pictures, AreSeenInEveryStepWhereTheCacheIsOff) {
  auto request = request_with_kept();
  const auto once = latents_of(options_of(kKept), request);
  request.pictures.reference_cache = ReferenceCache::kOff;
  const auto always = latents_of(options_of(kKept), request);
  EXPECT_FALSE(at::allclose(once, always, 1e-3, 1e-3));
  const auto plain = latents_of(options_of("tests/data/parity/klein/model"), request);
  EXPECT_TRUE(at::equal(always, plain));
}

struct OfAModel {
  const char* name;
  std::string model;
  Request request;
};

std::vector<OfAModel> requests_with_pictures() {
  auto drawn = request_with({.init = waves(70, 64), .mask = half(70, 64)});
  drawn.true_cfg = 1;
  drawn.guidance = 3;
  return {{"drawn", "tests/data/parity/klein-base/model", drawn},
          {"kept", kKept, request_with_kept()}};
}

std::vector<OfAModel> requests_with_masks() {
  auto masked = request_with({.init = waves(50, 40), .mask = half(50, 40), .padding_crop = 4});
  auto filled = masked;
  filled.negative_prompt = {};
  filled.true_cfg = 1;
  return {{"masked", "models/demo", masked}, {"filled", "tests/data/parity/fill/model", filled}};
}

class PicturesInMemory : public testing::TestWithParam<OfAModel> {};

TEST_P(PicturesInMemory, AreTheSameHoweverWeightsAreKept) {
  const auto& [name, model, request] = GetParam();
  auto options = options_of(model);
  const auto want = latents_of(options, request);
  for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kSequential}) {
    options.memory.offload = {.transformer = mode, .text = mode, .vae = mode};
    EXPECT_TRUE(at::equal(latents_of(options, request), want)) << int(mode);
  }
}

TEST_P(PicturesInMemory, AreCloseInEightBitsAndTheSameOnTwoRanks) {
  const auto& [name, model, request] = GetParam();
  auto options = options_of(model);
  const auto exact = latents_of(options, request);
  const auto error = [](const Tensor& got, const Tensor& want) {
    return ((got - want).norm() / want.norm()).item<double>();
  };
  options.memory.quantize = Quantize::kInt8;
  const auto coded = latents_of(options, request);
  EXPECT_GT(error(coded, exact), 0);
  EXPECT_LT(error(coded, exact), 0.05);
  options.layout.ring = 2;
  options.threads = 2;
  EXPECT_LT(error(latents_of(options, request), coded), 1e-5);
}

const auto kModelsName = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Models, PicturesInMemory, testing::ValuesIn(requests_with_pictures()),
                         kModelsName);
INSTANTIATE_TEST_SUITE_P(SlowModels, PicturesInMemory, testing::ValuesIn(requests_with_masks()),
                         kModelsName);

}  // namespace braid::pictures_test
