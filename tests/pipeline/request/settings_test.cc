// Settings: defaults are filled in, sizes rounded, and values out of range refused by name.
#include "pipeline/request/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "message_of.h"
#include "pictures.h"
#include "pipeline/request/latents.h"

namespace braid::settings_test {

using testing::ElementsAre;
using testing::HasSubstr;

const RequestLimits kLimits{.defaults = {.width = 128, .height = 64, .steps = 20, .guidance = 2},
                            .size_multiple = 16,
                            .num_texts = 2};

RequestLimits limits_of(GuidanceKind kind, GuidedFrom from = GuidedFrom::kNegative) {
  return {.defaults = {.guidance = 2}, .guidance = kind, .guided_from = from};
}

Settings settled(const Request& request, std::vector<std::string>* warnings = nullptr,
                 const RequestLimits& limits = kLimits) {
  return settle(request, limits, [&](const std::string& w) {
    if (warnings) warnings->push_back(w);
  });
}

std::string refusal(Request request, const RequestLimits& limits = kLimits) {
  if (request.prompts.empty()) request.prompts = {"a"};
  return message_of([&] { settled(request, nullptr, limits); });
}

TEST(Settle, FillsInTheModelsDefaults) {
  const auto s = settled({.prompts = {"a"}});
  EXPECT_EQ(s.width, 128);
  EXPECT_EQ(s.height, 64);
  EXPECT_EQ(s.steps, 20);
  EXPECT_EQ(s.guidance, 2);
  EXPECT_EQ(s.prompts[0].text, "a");
}

TEST(Settle, RoundsSizesDownWithAWarning) {
  std::vector<std::string> warnings;
  const auto s = settled({.prompts = {"a"}, .width = 100, .height = 48}, &warnings);
  EXPECT_EQ(s.width, 96);
  EXPECT_EQ(s.height, 48);
  EXPECT_THAT(warnings, ElementsAre("the width 100 is rounded down to 96, a multiple of 16"));
}

// diffusers' pipelines of FLUX.1 and Qwen-Image cut before they round, klein's rounds first.
TEST(Settle, KeepsTheShapeOfACropAsItIsAskedForOrAsItIsDrawn) {
  const auto white = grey_picture(90, 61, 255);
  const Request request{.prompts = {"a"},
                        .width = 79,
                        .height = 48,
                        .pictures = {.init = white, .mask = white, .padding_crop = 7}};
  using Taken = PicturesTaken;
  for (const auto& [kept, width] :
       {std::pair(Taken::CropShape::kAsked, 79), {Taken::CropShape::kDrawn, 64}}) {
    auto limits = kLimits;
    limits.pictures = {.init = Taken::Init::kMaybe, .crop_shape = kept};
    const auto s = settled(request, nullptr, limits);
    EXPECT_EQ(s.width, 64);
    EXPECT_EQ(s.crop_shape.width, width);
    const auto again = settled(completed(request, s), nullptr, limits);
    EXPECT_EQ(again.crop_shape.width, width) << "drawn again as it says";
  }
}

TEST(Settle, NumbersPicturesPromptByPrompt) {
  const auto s = settled({.prompts = {"a", "b"}, .prompts_2 = {"c", "d"}, .num_images = 3});
  EXPECT_EQ(s.num_pictures(), 6);
  EXPECT_EQ(s.prompt_of(2).text, "a");
  EXPECT_EQ(s.prompt_of(3).text, "b");
  EXPECT_EQ(s.prompt_of(3).second, "d");
}

TEST(Settle, TrueGuidanceNeedsAScaleAndANegativePrompt) {
  std::vector<std::string> warnings;
  EXPECT_TRUE(settled({.prompts = {"a"}, .negative_prompt = "b", .true_cfg = 2}).negative);
  EXPECT_FALSE(settled({.prompts = {"a"}, .negative_prompt = "b"}, &warnings).negative);
  EXPECT_FALSE(settled({.prompts = {"a"}, .true_cfg = 2}, &warnings).negative);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("is not used"), HasSubstr("is off")));
  EXPECT_EQ(settled({.prompts = {"a"}, .negative_prompt = "", .true_cfg = 2}).negative->second, "");
}

// diffusers' `true_cfg_scale` does nothing up to 1.
TEST(Settle, ATrueGuidanceScaleBelowOneIsOff) {
  for (const double scale : {0.0, 0.5}) {
    std::vector<std::string> warnings;
    EXPECT_FALSE(settled({.prompts = {"a"}, .true_cfg = scale}, &warnings).negative);
    const auto with_negative =
        settled({.prompts = {"a"}, .negative_prompt = "b", .true_cfg = scale}, &warnings);
    EXPECT_FALSE(with_negative.negative);
    EXPECT_THAT(warnings, ElementsAre(testing::EndsWith("is taken as 1, which is off"),
                                      testing::EndsWith(": the negative prompt is not used")));
    for (const auto kind : {GuidanceKind::kTrue, GuidanceKind::kEmbedded, GuidanceKind::kNone}) {
      warnings.clear();
      settled({.prompts = {"a"}, .true_cfg = scale}, &warnings, limits_of(kind));
      EXPECT_THAT(warnings, ElementsAre(testing::EndsWith("is taken as 1, which is off")));
    }
  }
  EXPECT_THAT(refusal({.true_cfg = -1}), HasSubstr("scale should be at least 0, it is -1"));
  EXPECT_THAT(refusal({.true_cfg = -1}, limits_of(GuidanceKind::kTrue)),
              HasSubstr("scale should be at least 0, it is -1"));
}

TEST(Settle, GuidanceOfItsOwnIsTrueAgainstAnEmptyPrompt) {
  const auto limits = limits_of(GuidanceKind::kTrue);
  auto s = settled({.prompts = {"a"}}, nullptr, limits);
  EXPECT_EQ(s.negative->text, "");
  EXPECT_EQ(s.true_guidance.scale, 2);
  s = settled({.prompts = {"a"}, .negative_prompt = "b", .guidance = 3}, nullptr, limits);
  EXPECT_EQ(s.negative->text, "b");
  EXPECT_EQ(s.true_guidance.scale, 3);
  EXPECT_EQ(num_branches({.guidance = 1.5}, limits), 2);
  EXPECT_EQ(num_branches({.guidance = 1}, limits), 1);
  EXPECT_FALSE(settled({.prompts = {"a"}, .guidance = 1}, nullptr, limits).negative);
  std::vector<std::string> warnings;
  settled({.prompts = {"a"}, .negative_prompt = "b", .guidance = 1}, &warnings, limits);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("takes a guidance scale above 1")));
}

TEST(Settle, GuidanceFromThePositivePromptRunsAboveZero) {
  const auto limits = limits_of(GuidanceKind::kTrue, GuidedFrom::kPositive);
  EXPECT_EQ(num_branches({.guidance = 0.5}, limits), 2);
  EXPECT_EQ(num_branches({.guidance = 0}, limits), 1);
  const auto s = settled({.prompts = {"a"}, .cfg_until = 0.5}, nullptr, limits);
  EXPECT_EQ(s.true_guidance.from, GuidedFrom::kPositive);
  EXPECT_EQ(s.true_guidance.until, 0.5);
}

// The rule of FLUX.3's guider, diffusers' ClassifierFreeGuidance.
TEST(Settle, GuidanceMayRunAtEveryScaleButOne) {
  auto limits = limits_of(GuidanceKind::kTrue);
  limits.guided_scales = GuidedScales::kAllButNeutral;
  for (const double scale : {-1.0, 0.0, 0.5, 1.0000001, 3.5}) {
    const Request request{.prompts = {"a"}, .negative_prompt = "b", .guidance = scale};
    std::vector<std::string> warnings;
    const auto s = settled(request, &warnings, limits);
    EXPECT_EQ(num_branches(request, limits), 2) << scale;
    ASSERT_TRUE(s.negative) << scale;
    EXPECT_EQ(s.negative->text, "b");
    EXPECT_EQ(s.true_guidance.scale, scale);
    EXPECT_TRUE(warnings.empty()) << scale;
  }
  EXPECT_EQ(num_branches({.guidance = 1}, limits), 1);
  std::vector<std::string> warnings;
  settled({.prompts = {"a"}, .negative_prompt = "b", .guidance = 1}, &warnings, limits);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("takes a guidance scale other than 1")));
}

// FLUX.1-schnell's transformer has no guidance embedder.
TEST(Settle, WarnsOfGuidanceThatNothingTakes) {
  for (const auto kind : {GuidanceKind::kEmbedded, GuidanceKind::kEmbeddedOrTrue}) {
    const auto said = [&](std::optional<double> guidance, bool is_taken) {
      std::vector<std::string> warnings;
      const RequestLimits limits{.guidance = kind, .embeds_guidance = is_taken};
      const auto s = settled({.prompts = {"a"}, .guidance = guidance}, &warnings, limits);
      EXPECT_EQ(s.guidance_kind, is_taken ? kind : GuidanceKind::kNone);
      EXPECT_EQ(s.guidance, guidance.value_or(is_taken ? 3.5 : 0));
      return warnings;
    };
    EXPECT_THAT(said(3.5, false), ElementsAre("the guidance scale is not used: this model takes no "
                                              "guidance as a number"));
    EXPECT_THAT(said(3.5, true), ElementsAre());
    EXPECT_THAT(said(0, false), ElementsAre());
    EXPECT_THAT(said({}, false), ElementsAre());
  }
}

TEST(Settle, RefusesANegativePromptWhereThereIsNone) {
  const auto none = limits_of(GuidanceKind::kNone), embedded = limits_of(GuidanceKind::kEmbedded);
  EXPECT_THAT(refusal({.negative_prompt = "b"}, none),
              HasSubstr("no negative prompt: it was distilled to follow prompts without guidance"));
  EXPECT_THAT(refusal({.negative_prompt = "b"}, embedded),
              HasSubstr("no negative prompt: its guidance is a number"));
  for (const auto& limits : {none, embedded, limits_of(GuidanceKind::kTrue)})
    EXPECT_THAT(refusal({.true_cfg = 2}, limits), HasSubstr("no true guidance beside its own"));
  std::vector<std::string> warnings;
  EXPECT_EQ(settled({.prompts = {"a"}, .guidance = 3}, &warnings, embedded).guidance, 3);
  EXPECT_TRUE(warnings.empty());
  settled({.prompts = {"a"}, .guidance = 3}, &warnings, none);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("the guidance scale is not used")));
}

TEST(Settle, RefusesASecondPromptForOneTextEncoder) {
  const auto limits = limits_of(GuidanceKind::kTrue);
  EXPECT_THAT(refusal({.prompts_2 = {"b"}}, limits), HasSubstr("it takes no second prompt"));
  EXPECT_THAT(refusal({.negative_prompt = "b", .negative_prompt_2 = "c"}, limits),
              HasSubstr("it takes no second prompt"));
}

TEST(Settle, WarnsOfShapedGuidanceThatDoesNotRun) {
  std::vector<std::string> warnings;
  settled({.prompts = {"a"}, .guidance_rescale = 0.5}, &warnings);
  settled({.prompts = {"a"}, .negative_prompt = "b", .true_cfg = 2, .cfg_norm_cap = 1}, &warnings);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("not rescaled or capped")));
  EXPECT_THAT(refusal({.guidance_rescale = -0.1}), HasSubstr("the guidance rescale should lie"));
  EXPECT_THAT(refusal({.cfg_until = 1.5}), HasSubstr("true guidance runs should lie between 0"));
  EXPECT_THAT(refusal({.cfg_norm_cap = INFINITY}), HasSubstr("norm cap of guidance"));
}

TEST(Settle, WarnsOfNormalizationThatDoesNotRun) {
  std::vector<std::string> warnings;
  const Request asked{.prompts = {"a"}, .cfg_normalize = false};
  auto limits = limits_of(GuidanceKind::kTrue);
  EXPECT_EQ(settled(asked, &warnings, limits).cfg_normalize, std::nullopt);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("this model's guidance keeps no lengths")));
  limits.guided_channels = 16;
  warnings.clear();
  const auto s = settled(asked, &warnings, limits);
  EXPECT_EQ(s.cfg_normalize, false);
  EXPECT_EQ(completed(asked, s).cfg_normalize, false);
  EXPECT_TRUE(warnings.empty());
  auto alone = asked;
  alone.guidance = 1;
  EXPECT_EQ(completed(alone, settled(alone, &warnings, limits)).cfg_normalize, std::nullopt);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("true guidance is off")));
}

TEST(Settle, WarnsOfAReferenceCacheThatIsNone) {
  std::vector<std::string> warnings;
  Request asked{.prompts = {"a"}};
  asked.pictures.reference_cache = ReferenceCache::kOff;
  const auto s = settled(asked, &warnings);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("the reference cache is off anyway")));
  EXPECT_EQ(completed(asked, s).pictures.reference_cache, ReferenceCache::kAuto);
  auto once = kLimits, kept = kLimits;
  once.pictures.reference_use = PicturesTaken::ReferenceUse::kOnce;
  kept.may_keep_prefix = true;
  warnings.clear();
  for (const auto& limits : {once, kept})
    EXPECT_EQ(settled(asked, &warnings, limits).reference_cache, ReferenceCache::kOff);
  EXPECT_TRUE(warnings.empty());
}

TEST(Settle, ARoundFillsTheStagesOfEveryReplica) {
  Settings s;
  s.batch_size = 3;
  EXPECT_EQ(pictures_per_round(s, {}), 3);
  EXPECT_EQ(pictures_per_round(s, {.dp = 2, .cfg = 2, .pp = 4, .ring = 3, .tp = 2}), 24);
}

TEST(Settle, RefusesWhatIsOutOfRangeByName) {
  EXPECT_THAT(refusal({.width = 0}), HasSubstr("the width should lie between 16 and"));
  EXPECT_THAT(refusal({.width = 15}), HasSubstr("width"));
  EXPECT_THAT(refusal({.height = -16}), HasSubstr("it is -16"));
  EXPECT_THAT(refusal({.height = 1 << 30}), HasSubstr("height"));
  EXPECT_THAT(refusal({.steps = 0}), HasSubstr("the number of steps"));
  EXPECT_THAT(refusal({.guidance = std::nan("")}), HasSubstr("guidance scale should be a finite"));
  EXPECT_THAT(refusal({.guidance = 1e300}), HasSubstr("at most 3.4e38, it is 1e+300"));
  EXPECT_THAT(refusal({.true_cfg = INFINITY}), HasSubstr("true guidance scale"));
  EXPECT_THAT(refusal({.max_sequence_length = 513}), HasSubstr("between 1 and 512"));
  EXPECT_THAT(refusal({.num_images = 0}), HasSubstr("number of pictures"));
  EXPECT_THAT(refusal({.batch_size = 0}), HasSubstr("batch size"));
  EXPECT_THAT(refusal({.prompts_2 = {"a", "b"}}), HasSubstr("1 prompts but 2"));
  EXPECT_THAT(refusal({.negative_prompt_2 = "x"}), HasSubstr("needs a negative prompt"));
  try {
    settled({.prompts = {}});
    FAIL();
  } catch (const InputError& e) {
    EXPECT_STREQ(e.what(), "there is no prompt");
  }
}

TEST(Settle, RefusesTextThatIsNotUtf8) {
  EXPECT_EQ(refusal({.prompts = {"a", "b \xff"}}), "the prompt should be UTF-8 text");
  EXPECT_EQ(refusal({.prompts_2 = {"\xc3"}}), "the second prompt should be UTF-8 text");
  EXPECT_EQ(refusal({.negative_prompt = "\xed\xa0\x80"}),
            "the negative prompt should be UTF-8 text");
  EXPECT_EQ(refusal({.negative_prompt = "b", .negative_prompt_2 = "\x80"}),
            "the second negative prompt should be UTF-8 text");
  EXPECT_EQ(refusal({.prompts = {"\xe2\x82\xac \xf0\x9f\x8e\xa8"}}), "");
}

TEST(Settle, RefusesNumbersThatAreNoChoice) {
  for (const int number : {-1, 3}) {
    const auto wanted = [&](const char* field) {
      return text_of("there is no such ", field, " as number ", number);
    };
    EXPECT_EQ(refusal({.vae_tiling = VaeTiling(number)}), wanted("vae_tiling"));
    EXPECT_EQ(refusal({.output = Output(number)}), wanted("output"));
    EXPECT_EQ(refusal({.pictures = {.reference_cache = ReferenceCache(number)}}),
              wanted("pictures.reference_cache"));
  }
}

TEST(Latents, HaveOneOfTwoShapesAndAllTheirValues) {
  const std::vector<std::int64_t> packed = {2, 6, 4}, unpacked = {2, 1, 4, 6};
  const auto refused = [&](const Latents& latents) {
    try {
      check_latents("the latents", latents, {packed, unpacked});
    } catch (const InputError& e) {
      return std::string(e.what());
    }
    return std::string("");
  };
  const std::vector<float> values(48);
  EXPECT_EQ(refused({.shape = {2, 6, 4}, .values = values}), "");
  EXPECT_EQ(refused({.shape = {2, 1, 4, 6}, .values = values}), "");
  EXPECT_EQ(refused({.shape = {2, 4, 6}, .values = values}),
            "the latents should have the shape [2, 6, 4] or [2, 1, 4, 6], they have "
            "[2, 4, 6]");
  EXPECT_THAT(refused({.shape = {}, .values = {}}), HasSubstr("they have []"));
  EXPECT_EQ(refused({.shape = {2, 6, 4}, .values = std::vector<float>(47)}),
            "the latents should have 48 values, they have 47");
}

}  // namespace braid::settings_test
