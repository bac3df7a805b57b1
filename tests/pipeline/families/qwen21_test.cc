// Qwen-Image-2.1 through the Family interface: what it does as no other family.
// every_family_test.cc has what all do; parity_test.cc checks the numbers against diffusers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "message_of.h"
#include "pictures.h"
#include "pipeline/families/qwen21/describe.h"
#include "pipeline/planner/costs/memory.h"
#include "pipeline/planner/named_job.h"
#include "pipeline/planner/planner.h"
#include "pipeline/request/check_pictures.h"
#include "predicted.h"
#include "random_picture.h"
#include "small_models.h"

namespace braid::qwen21_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Even where references have a megapixel, their latents are few: 4096 and 4144.
Pixels qwen21_reference(int width, int height, std::uint64_t seed, bool has_alpha) {
  auto picture = random_picture(width, height, seed);
  if (!has_alpha) picture.alpha.clear();
  return picture;
}

Request qwen21_with_references(ReferenceCache cache = ReferenceCache::kAuto) {
  auto request = kQwen21.guided;
  request.pictures.references = {qwen21_reference(32, 32, 1, true),
                                 qwen21_reference(60, 44, 2, false)};
  request.pictures.reference_cache = cache;
  return request;
}

// On above 1; the empty prompt is the negative one, and is read as a space.
TEST(Qwen21Family, IsGuidedAboveOneAgainstAnEmptyPrompt) {
  auto request = kQwen21.plain;
  const auto plain = kQwen21.drawn(kQwen21.with(), request);
  EXPECT_EQ(plain.pictures.front().channels(), 4);
  request.guidance = 1;
  EXPECT_TRUE(
      at::equal(kQwen21.drawn(kQwen21.with(), request)["latents_final"], plain["latents_final"]));
  request.guidance = 1.5;
  const auto guided = kQwen21.drawn(kQwen21.with(), request);
  EXPECT_GT(relative_error(guided["latents_final"], plain["latents_final"]), 1e-3);
  for (const char* const negative : {"", " "}) {
    request.negative_prompt = negative;
    EXPECT_TRUE(at::equal(kQwen21.drawn(kQwen21.with(), request)["latents_final"],
                          guided["latents_final"]));
  }
}

// In every step queries of the prefix and of the image are computed together: a row then rounds
// otherwise where MKL multiplies by Intel's AVX2.
TEST(Qwen21Family, DrawsTheSameWithItsPrefixKept) {
  auto in_every_step = kQwen21.guided;
  in_every_step.pictures.reference_cache = ReferenceCache::kOff;
  expect_as_drawn(kQwen21.drawn(kQwen21.with(), in_every_step),
                  kQwen21.drawn(kQwen21.with(), kQwen21.guided), kQwen21.magnified);
}

// In every step the same as from what is kept.
TEST(Qwen21Family, DrawsTheSameWithItsPrefixInEveryStepUnderEveryLayout) {
  auto request = kQwen21.guided;
  request.pictures.reference_cache = ReferenceCache::kOff;
  const auto one = kQwen21.drawn(kQwen21.with(), request);
  for (const Layout& layout : {Layout{.tp = 4}, Layout{.tp = 2, .text = TextRanks::kShared},
                               Layout{.ring = 3}, Layout{.tp = 2, .ulysses = 2}, Layout{.pp = 2}})
    expect_as_drawn(kQwen21.drawn(kQwen21.with(layout), request), one, kQwen21.magnified);
}

// References are 8240 tokens before the image's.
TEST(SlowQwen21Family, LooksAtReferencesUnderLayouts) {
  const auto request = qwen21_with_references();
  const auto one = kQwen21.drawn(kQwen21.with(), request);
  for (const Layout& layout : {Layout{.tp = 2}, Layout{.ring = 2}, Layout{.ulysses = 2},
                               Layout{.cfg = 2}, Layout{.pp = 2}})
    expect_as_drawn(kQwen21.drawn(kQwen21.with(layout), request), one, kQwen21.magnified);
}

TEST(SlowQwen21Family, DrawsTheSameWithItsReferencesKept) {
  const auto kept = kQwen21.drawn(kQwen21.with(), qwen21_with_references());
  const auto in_every_step =
      kQwen21.drawn(kQwen21.with(), qwen21_with_references(ReferenceCache::kOff));
  EXPECT_TRUE(at::equal(in_every_step["latents_final"], kept["latents_final"]));
  auto opaque = qwen21_with_references();
  opaque.pictures.references.front().alpha.clear();
  const auto other = kQwen21.drawn(kQwen21.with(), opaque);
  EXPECT_GT(relative_error(other["latents_final"], kept["latents_final"]), 1e-3);
}

TEST(Qwen21Family, ResizesReferencesToAMegapixel) {
  const auto size = [](int width, int height) {
    const auto fitted = fit_qwen21_reference(grey_picture(width, height));
    return std::pair(fitted.width, fitted.height);
  };
  EXPECT_EQ(size(10, 10), std::pair(1024, 1024));
  EXPECT_EQ(size(60, 44), std::pair(1184, 864));  // 1195.8 x 876.9
  EXPECT_EQ(size(40, 90), std::pair(672, 1536));  // 682.7 x 1536
  EXPECT_THAT(message_of([&] { size(9000, 1); }), HasSubstr("too narrow"));
}

// Qwen2VLImageProcessor refuses what is more than 200 times as long as wide.
TEST(Qwen21Family, RefusesReferencesThatItsTextEncoderCannotBeShown) {
  const auto taken = named_family("qwen-image-2.1")->description().limits.pictures;
  const auto refusal = [&](int width, int height) {
    const auto narrow = grey_picture(width, height);
    return message_of(
        [&] { check_pictures({.prompts = {"a"}, .pictures = {.references = {narrow}}}, taken); });
  };
  EXPECT_EQ(refusal(10, 1500), "");
  EXPECT_EQ(
      refusal(10, 1900),
      "a reference of 10x1900 pixels is too narrow: the text encoder would be shown 64x14112, "
      "and its longer side should be at most 200 times the shorter");
}

// The size is the last reference's, unless the request has one.
TEST(Qwen21Family, DrawsTheSizeOfItsLastReference) {
  const auto limits = named_family("qwen-image-2.1")->description().limits;
  auto request = qwen21_with_references();
  request.width = request.height = {};
  EXPECT_EQ(drawn_size(request, limits).width, 1184);
  EXPECT_EQ(drawn_size(request, limits).height, 864);
  request.width = 100;
  EXPECT_EQ(drawn_size(request, limits).width, 96);
  request.pictures.references.clear();
  EXPECT_EQ(drawn_size(request, limits).height, 1024);
}

// As published. The vision tower and the language model have all their layers.
TEST(Qwen21Family, MayKeepItsPrefix) {
  EXPECT_TRUE(named_family("qwen-image-2.1")->description().limits.may_keep_prefix);
  EXPECT_FALSE(named_family("flux1-dev")->description().limits.may_keep_prefix);
}

TEST(Qwen21Family, IsPlannedByName) {
  const auto job = surveyed(named_job("qwen-image-2.1"));
  EXPECT_EQ(numbers_of_part(job, Part::Role::kDenoiser), 7'115'124'736);
  // With post_quant_conv, and without three convolutions over time.
  EXPECT_EQ(numbers_of_part(job, Part::Role::kDecoder),
            259'044'052 + 65 * 64 - 2 * 1153 * 2304 - 577 * 1152);
  EXPECT_EQ(job.branches, 1);
  EXPECT_EQ(job.steps, 40);
  EXPECT_EQ(job.image_tokens(), 4096);
  EXPECT_EQ(named_job("qwen-image-2.1-turbo").steps, 8);
}

// Two branches of 4096 tokens of text, in each of 32 blocks keys and values of 4096 numbers.
TEST(Qwen21Family, PlansThePrefixThatIsHeld) {
  const auto job = surveyed(named_job("qwen-image-2.1"));
  const auto bytes = predict_bytes(job, {}, 0, whole_transformer(job.shape()));
  EXPECT_EQ(bytes.kept, std::int64_t(job.text_tokens) * 32 * 2 * 4096 * 2);
  EXPECT_EQ(bytes.modulations, std::int64_t(40) * 9 * 4096 * 2);
}

// Computed by diffusers' scheduler, and Turbo's grid as it is.
TEST(Qwen21Family, HasTheScheduleOfItsKind) {
  const PictureSize size{.width = 1024, .height = 1024};
  const std::vector<float> eight = {1,       .91602F, .82005F, .70929F, .58007F,
                                    .42735F, .24405F, .02F,    0};
  EXPECT_THAT(named_family("qwen-image-2.1")->schedule(8, size, StartsFrom::kNoise).sigmas,
              testing::Pointwise(testing::FloatNear(6e-6F), eight));
  const auto turbo = named_family("qwen-image-2.1-turbo");
  const auto& sampling = turbo->description().limits.defaults.sampling;
  const std::vector<float> grid = {1,        .978453F, .95418F,  .926626F, .89508F,
                                   .845148F, .704534F, .414568F, 0};
  EXPECT_EQ(turbo->schedule_as(sampling, 8, size, StartsFrom::kNoise).sigmas, grid);
}

// A line of linear shifts that falls below 0 for few tokens: levels of 1, 1.7, -4.3 and -0.4.
TEST(Qwen21Family, RefusesSamplersAndSchedulesThatNeedFallingLevels) {
  const TemporaryFolder scratch;
  const auto changed = scratch / "model";
  std::filesystem::copy(kQwen21.folder, changed, std::filesystem::copy_options::recursive);
  edit_json(changed / "scheduler/scheduler_config.json", [](Json& json) {
    json.merge_patch({{"use_dynamic_shifting", true},
                      {"time_shift_type", "linear"},
                      {"base_shift", 0.1},
                      {"max_shift", 3.0},
                      {"base_image_seq_len", 1000},
                      {"max_image_seq_len", 4096},
                      {"shift_terminal", nullptr}});
  });
  const auto refusal = [&](const Sampling& sampling) {
    auto request = kQwen21.plain;
    request.steps = 4;
    request.sampling = sampling;
    return message_of([&] { kQwen21.drawn(kQwen21.from(changed), request); });
  };
  EXPECT_EQ(refusal({}), "");  // as diffusers draws it
  EXPECT_EQ(refusal({.sampler = Sampler::kLcm}), "");
  for (const auto sampler : {Sampler::kHeun, Sampler::kDpm2, Sampler::kDpmpp2m,
                             Sampler::kResMultistep, Sampler::kErSde, Sampler::kEulerAncestral})
    EXPECT_THAT(refusal({.sampler = sampler}), HasSubstr("needs noise levels that fall"));
  for (const auto schedule : {SigmaSchedule::kSimple, SigmaSchedule::kBeta, SigmaSchedule::kKarras,
                              SigmaSchedule::kExponential})
    EXPECT_THAT(refusal({.schedule = schedule}), HasSubstr("needs noise levels that fall"));
}

TEST(Qwen21Family, RefusesConfigsThatDoNotFitOrAreNotImplemented) {
  const char* const transformer = "transformer/config.json";
  EXPECT_THAT(kQwen21.refusal_with(transformer, {{"context_in_dim", 12}}),
              HasSubstr("takes embedded text of width 12, the text encoder makes 24"));
  EXPECT_THAT(kQwen21.refusal_with(transformer, {{"in_channels", 4}, {"out_channels", 4}}),
              HasSubstr("takes tokens of 4 channels, the autoencoder's latents have 8"));
  EXPECT_THAT(kQwen21.refusal_with(transformer, {{"causal_condition", "no"}}),
              HasSubstr("'causal_condition'"));
  EXPECT_THAT(kQwen21.refusal_with("vae/config.json", {{"_class_name", "AutoencoderKLWan"}}),
              HasSubstr("'is_residual' should be false"));
  EXPECT_THAT(kQwen21.refusal_with("vae/config.json", {{"patch_size", 2}}),
              HasSubstr("'patch_size'"));
  EXPECT_THAT(kQwen21.refusal_with("processor/preprocessor_config.json", {{"patch_size", 14}}),
              HasSubstr("'patch_size'"));
  EXPECT_THAT(kQwen21.refusal_with("model_index.json", {{"sample_sigmas", {0.5, 0.7}}}),
              HasSubstr("should fall"));
  EXPECT_THAT(kQwen21.refusal_with("model_index.json", {{"sample_sigmas", {1.5, 0.7}}}),
              HasSubstr("1.5"));
  EXPECT_THAT(kQwen21.refusal_with("model_index.json", {{"_class_name", "QwenImage3"}}),
              HasSubstr("it describes a QwenImage3"));
}

// The small tokenizer makes 5 tokens of the beginning of the user's turn, 11 of its end, one of the
// empty prompt's space, and 7 of a picture's name and markers, beside its own.
TEST(Qwen21Family, RefusesLengthsThatTheChatExceeds) {
  auto request = kQwen21.plain;
  const Engine engine(kQwen21.with(), {});
  for (const int length : {1, 12, 16}) {
    request.max_sequence_length = length;
    EXPECT_EQ(
        message_of([&] { engine.generate(request, {}); }),
        "`max_sequence_length` should be at least 17 to hold the chat around a prompt, it is " +
            std::to_string(length));
  }
  request.max_sequence_length = 17;
  EXPECT_EQ(engine.generate(request, {}).pictures.size(), 1u);
  request.pictures.references = {qwen21_reference(32, 32, 1, false)};
  EXPECT_THAT(message_of([&] { engine.generate(request, {}); }),
              HasSubstr("at least 24 to hold the chat around a prompt and a picture, it is 17"));
}

// The template beside the tokenizer, which is in the processor's folder.
TEST(Qwen21Family, WarnsOfAnotherChatTemplate) {
  const TemporaryFolder scratch;
  const auto changed = scratch / "model";
  std::filesystem::copy(kQwen21.folder, changed, std::filesystem::copy_options::recursive);
  std::vector<std::string> warnings;
  const Hooks hooks{.warning = [&](const std::string& w) { warnings.push_back(w); }};
  (void)Engine(kQwen21.from(changed), hooks);
  EXPECT_THAT(warnings, testing::IsEmpty());
  const auto file = changed / "processor/chat_template.jinja";
  write_file(file, "one two three four" + read_file(file));
  (void)Engine(kQwen21.from(changed), hooks);
  EXPECT_THAT(warnings, testing::ElementsAre(HasSubstr("processor writes text before or behind")));
}

TEST(Qwen21Family, RefusesRequestsThatItCannotDraw) {
  auto request = kQwen21.plain;
  request.true_cfg = 4;
  EXPECT_THAT(message_of([&] { kQwen21.drawn(kQwen21.with(), request); }),
              HasSubstr("no true guidance beside its own"));
  EXPECT_THAT(message_of([&] { kQwen21.drawn(kQwen21.with({.tp = 5})); }),
              HasSubstr("tp 5 leaves a rank without a head"));
  request = kQwen21.plain;
  request.pictures.references.assign(11, qwen21_reference(32, 32, 1, false));
  EXPECT_THAT(message_of([&] { kQwen21.drawn(kQwen21.with(), request); }),
              HasSubstr("looks at 10 references at most"));
  request = kQwen21.plain;
  request.prompts = {"a <|image_pad|>"};
  EXPECT_THAT(message_of([&] { kQwen21.drawn(kQwen21.with(), request); }),
              HasSubstr("marks the place of 1 picture"));
  request.prompts = {"a <|video_pad|>"};
  EXPECT_THAT(message_of([&] { kQwen21.drawn(kQwen21.with(), request); }),
              HasSubstr("the prompt marks the place of a video, <|video_pad|>"));
}

}  // namespace braid::qwen21_test
