// Qwen-Image through the Family interface: what it does as no other family. every_family_test.cc
// has what all do; parity_test.cc checks the numbers against diffusers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "copies.h"
#include "image/png.h"
#include "message_of.h"
#include "models/qwen_image/model.h"
#include "pictures.h"
#include "pipeline/families/qwen_image/qwen_image.h"
#include "pipeline/files/found_files.h"
#include "pipeline/planner/costs/memory.h"
#include "pipeline/planner/named_job.h"
#include "pipeline/planner/planner.h"
#include "pipeline/request/check_pictures.h"
#include "pipeline/request/settings.h"
#include "predicted.h"
#include "small_models.h"
#include "weights/files/safetensors_writer.h"

namespace braid::qwen_image_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

// negative + scale * (positive - negative), on above 1 against a space, whose tokens then get the
// lengths of the positive branch's.
TEST(QwenImageFamily, IsGuidedAboveOneAgainstASpace) {
  auto request = kQwenImage.plain;
  request.steps = 2;  // one alone has no levels
  const auto positive = kQwenImage.drawn(kQwenImage.with(), request)["velocity_first"];
  request.guidance = 3;
  auto spelled = request;
  spelled.negative_prompt = " ";
  const auto got = kQwenImage.drawn(kQwenImage.with(), request);
  const auto same = kQwenImage.drawn(kQwenImage.with(), spelled);
  EXPECT_TRUE(at::equal(got["latents_final"], same["latents_final"]));
  auto space = request;
  space.prompts = {" "};
  space.guidance = 1;
  const auto negative = kQwenImage.drawn(kQwenImage.with(), space)["velocity_first"];
  auto sum = negative + 3 * (positive - negative);
  sum = sum * (positive.norm(2, {-1}, true) / sum.norm(2, {-1}, true));
  const TrueGuidance guidance{.scale = 3, .kept_channels = 16};
  EXPECT_LT(relative_error(guide({positive, negative}, guidance, 0), sum), 1e-6);
  EXPECT_GT(
      relative_error(got["latents_final"], kQwenImage.drawn(kQwenImage.with())["latents_final"]),
      1e-3);
}

TEST(QwenImageFamily, DrawsNoiseInTheModelsNumbers) {
  auto options = kQwenImage.with();
  options.dtype = Dtype::kBfloat16;
  EXPECT_FALSE(at::equal(kQwenImage.drawn(options)["latents_initial"],
                         kQwenImage.drawn(kQwenImage.with())["latents_initial"]));
}

QwenImageConfig tiny_qwen_image() {
  return {.in_channels = 16,
          .out_channels = 16,
          .num_layers = 3,
          .num_heads = 4,
          .head_width = 6,
          .text_width = 12,
          .axes = {2, 2, 2}};
}

// The modulations are computed before the first step: their layers do not cross in the loop.
TEST(QwenImageFamily, CopiesWhatModulatesItsBlocksOncePerPicture) {
  const auto config = tiny_qwen_image();
  auto vae = wan_vae_config();
  vae.latent_channels = 4;
  const Probe probe{.family = make_qwen_image_family({.qwen = config, .vae = vae}, {}, {}),
                    .size = {.width = 32, .height = 32},
                    .text_tokens = 3,
                    .dtype = at::kFloat};
  expect_copies_once_per_picture<QwenImage>(config, probe, 3 * 12 * 24 * 24 * 4);
}

// 12 vectors of 3072 in each of 60 blocks, and two for the last norm.
TEST(QwenImageFamily, PlansTheModulationsThatAreHeldForAllSteps) {
  const auto job = surveyed(named_job("qwen-image"));
  const auto bytes = predict_bytes(job, {}, 0, whole_transformer(job.shape()));
  EXPECT_EQ(bytes.modulations, std::int64_t(2) * 50 * (60 * 12 + 2) * 3072 * 2);
}

// These are the published ones. The text encoder's tower is not loaded, nor its vocabulary's head;
// its table of tokens stays in the file.
TEST(QwenImageFamily, IsPlannedByName) {
  for (const auto* name : {"qwen-image", "qwen-image-2512"}) {
    const auto job = surveyed(named_job(name));
    EXPECT_EQ(numbers_of_part(job, Part::Role::kDenoiser), 20'430'401'088);
    EXPECT_EQ(numbers_of_part(job, Part::Role::kText),
              7'070'619'136 - std::int64_t(152'064) * 3584);
    EXPECT_EQ(job.branches, 2);
    EXPECT_EQ(job.steps, 50);
    EXPECT_EQ(job.image_tokens(), 4096);
  }
}

// Computed by diffusers' scheduler.
TEST(QwenImageFamily, HasASchedule) {
  const auto sigmas = [](int steps, PictureSize size) {
    return named_family("qwen-image")->schedule(steps, size, StartsFrom::kNoise).sigmas;
  };
  const std::vector<float> four = {1, .76671F, .45561F, .02F, 0},
                           eight = {1,       .91602F, .82005F, .70929F, .58007F,
                                    .42735F, .24405F, .02F,    0},
                           large = {1, .78098F, .47555F, .02F, 0};
  const testing::Matcher<std::tuple<float, float>> near = testing::FloatNear(6e-6F);
  EXPECT_THAT(sigmas(4, {.width = 1024, .height = 1024}), testing::Pointwise(near, four));
  EXPECT_THAT(sigmas(8, {.width = 1024, .height = 1024}), testing::Pointwise(near, eight));
  EXPECT_THAT(sigmas(4, {.width = 1328, .height = 1328}), testing::Pointwise(near, large));
}

TEST(QwenImageFamily, PlansWhatItsHeadsForbid) {
  const auto many = devices_named("", "25xh100");
  std::vector<std::string> reasons;
  for (const auto& layout :
       plan_layouts(named_job("qwen-image"), {many, link_of(many), link_of(many)}))
    reasons.push_back(layout.reason);
  EXPECT_THAT(reasons, testing::Contains(HasSubstr("without a head: the transformer has 24")));
}

TEST(QwenImageFamily, RefusesConfigsThatDoNotFitOrAreNotImplemented) {
  const char* const transformer = "transformer/config.json";
  const char* const text = "text_encoder/config.json";
  EXPECT_EQ(kQwenImage.refusal_with(transformer, {{"pooled_projection_dim", 768}}), "");
  EXPECT_THAT(kQwenImage.refusal_with(transformer, {{"guidance_embeds", true}}),
              HasSubstr("'guidance_embeds' should be false"));
  EXPECT_THAT(kQwenImage.refusal_with(transformer, {{"joint_attention_dim", 12}}),
              HasSubstr("takes embedded text of width 12, the text encoder makes 24"));
  EXPECT_THAT(kQwenImage.refusal_with(transformer, {{"in_channels", 8}}),
              HasSubstr("tokens of 8 and makes ones of 16 channels"));
  EXPECT_THAT(kQwenImage.refusal_with(text, {{"model_type", "qwen3_vl"}}),
              HasSubstr("should be qwen2_5_vl, it is 'qwen3_vl'"));
  EXPECT_THAT(kQwenImage.refusal_with(
                  text, {{"text_config", {{"rope_parameters", {{"mrope_section", {1, 1}}}}}}}),
              HasSubstr("'mrope_section' should be 3 numbers"));
  EXPECT_THAT(kQwenImage.refusal_with(text, {{"vision_config", {{"window_size", 100}}}}),
              HasSubstr("'window_size', 100, should be a multiple"));
  EXPECT_THAT(kQwenImage.refusal_with("vae/config.json", {{"attn_scales", {1.0}}}),
              HasSubstr("'attn_scales' should be empty"));
  EXPECT_THAT(kQwenImage.refusal_with("model_index.json", {{"_class_name", "QwenPipeline"}}),
              HasSubstr("it describes a QwenPipeline"));
  for (const auto* name : {"QwenImageControlNetPipeline", "QwenImageControlNetInpaintPipeline"})
    EXPECT_EQ(kQwenImage.refusal_with("model_index.json", {{"_class_name", name}}), "");
}

// The pictures of qwen-image-edit; a token is 32 pixels wide.
Request edit_request() {
  const auto folder = small_pipeline("qwen-image-edit").parent_path();
  const auto path = folder / "reference0.png";
  return {.prompts = {"a star"},
          .steps = 2,
          .guidance = 1,
          .pictures = {.references = {decode_png(read_file(path), path.string())}}};
}

PipelineOptions editing(const char* name, const Layout& layout = {}) {
  auto options = kQwenImage.with(layout);
  options.model = small_pipeline(name);
  return options;
}

// About a megapixel in the shape of the last reference: of 60x44 pixels, and of 40x90.
TEST(QwenImageEdit, DrawsInTheShapeOfTheLastReference) {
  auto request = edit_request();
  const auto limits =
      open_family(find_model(editing("qwen-image-edit")).files)->description().limits;
  auto settings = settle(request, limits, {});
  EXPECT_EQ(settings.width, 1184);
  EXPECT_EQ(settings.height, 864);
  auto tall = request.pictures.references.front();
  std::swap(tall.width, tall.height);
  request.pictures.references.push_back(tall);
  EXPECT_THAT(message_of([&] { settle(request, limits, {}); }), HasSubstr("1 reference at most"));
  const auto plus =
      open_family(find_model(editing("qwen-image-edit-plus")).files)->description().limits;
  settings = settle(request, plus, {});
  EXPECT_EQ(settings.width, 864);
  EXPECT_EQ(settings.height, 1184);
  request.pictures = {};
  EXPECT_THAT(message_of([&] { settle(request, plus, {}); }),
              HasSubstr("this model edits pictures: it needs a reference"));
  request.pictures = {.init = edit_request().pictures.references.front()};
  EXPECT_THROW(settle(request, plus, {}), InputError);
}

// The sizes are those of calculate_dimensions() in diffusers' pipelines, and Qwen2VLImageProcessor
// refuses what is more than 200 times as long as wide. Nothing of the encoders is loaded for it.
TEST(QwenImageEdit, RefusesReferencesThatItsTextEncoderCannotBeShown) {
  const auto refusal = [](const char* model, int width, int height) {
    const auto& taken =
        open_family(find_model(editing(model)).files)->description().limits.pictures;
    const auto narrow = grey_picture(width, height);
    return message_of(
        [&] { check_pictures({.prompts = {"a"}, .pictures = {.references = {narrow}}}, taken); });
  };
  const auto beyond = [](const char* given, const char* shown) {
    return text_of("a reference of ", given, " pixels is too narrow: the text encoder would be ",
                   "shown ", shown,
                   ", and its longer side should be at most 200 times the shorter");
  };
  EXPECT_EQ(refusal("qwen-image-edit", 10, 1500), "");  // as 96x12544
  EXPECT_EQ(refusal("qwen-image-edit", 10, 1900), beyond("10x1900", "64x14112"));
  EXPECT_EQ(refusal("qwen-image-edit", 6400, 10), beyond("6400x10", "25920x32"));
  EXPECT_EQ(refusal("qwen-image-edit-plus", 10, 1900), "");  // as 32x5280
  EXPECT_EQ(refusal("qwen-image-edit-plus", 10, 2700), "");
  EXPECT_EQ(refusal("qwen-image-edit-plus", 10, 6400),
            "a reference of 10x6400 pixels is too narrow: with the area of 384x384 it is less than "
            "16 pixels wide");
}

// The reference's pipelines cut nothing, whatever the length is.
TEST(SlowQwenImageEdit, ReadsItsPicturesWhateverTheLengthIs) {
  auto request = edit_request();
  request.prompts = {"a star", "two blue circles"};
  request.width = 96;
  request.height = 64;
  request.max_sequence_length = 1;
  std::vector<std::string> warnings;
  const auto facts =
      Engine(editing("qwen-image-edit"), {})
          .generate(request, {.warning = [&](const std::string& one) { warnings.push_back(one); }},
                    {.record = RecordTensors::kYes})
          .facts;
  const auto least = 202 + 3 + 1 - 64;  // the system's, the picture's, one of the prompt's
  EXPECT_THAT(warnings,
              testing::Contains(testing::AllOf(
                  HasSubstr(text_of("`max_sequence_length` should be at least ", least, " ")),
                  HasSubstr("it is 1: the prompt is ignored"))));
  const auto& embeds = facts.recording.at("prompt_embeds");
  EXPECT_GT(embeds.size(1), least);  // a picture has many tokens
  EXPECT_TRUE(at::equal(embeds[0], embeds[1]));
}

// References, at timestep 0, are split over ranks like the noise.
TEST(SlowQwenImageEdit, LooksAtReferencesUnderEveryLayout) {
  auto request = edit_request();
  request.width = 96;
  request.height = 64;
  const auto one = kQwenImage.drawn(editing("qwen-image-edit-plus"), request);
  for (const Layout& layout : {Layout{.tp = 2}, Layout{.ring = 2}, Layout{.ulysses = 2},
                               Layout{.pp = 2}, Layout{.tp = 2, .pp = 2}}) {
    const auto got = kQwenImage.drawn(editing("qwen-image-edit-plus", layout), request);
    EXPECT_LT(relative_error(got["velocity_first"], one["velocity_first"]), 1e-5);
    EXPECT_LT(relative_error(got["latents_final"], one["latents_final"]), 1e-5);
  }
}

// Layers of the image's modulations are applied to two timesteps.
TEST(QwenImageEdit, PlansTheModulationsOfReferences) {
  const auto job = surveyed(named_job("qwen-image-edit-2511"));
  const auto bytes = predict_bytes(job, {}, 0, whole_transformer(job.shape()));
  EXPECT_EQ(bytes.modulations, std::int64_t(2) * 50 * (60 * 18 + 2) * 3072 * 2);
  const auto& tensors = job.tensors->of(Part::Role::kDenoiser);
  const auto first = stage_of(job.shape(), {.begin = 0, .count = 20});
  const auto last = stage_of(job.shape(), {.begin = 20, .count = 40});
  EXPECT_EQ(num_modulations(job.shape().blocks, tensors, first), 20 * 18 * 3072);
  EXPECT_EQ(num_modulations(job.shape().blocks, tensors, last), (40 * 18 + 2) * 3072);
}

TEST(QwenImageFamily, RefusesRequestsThatItCannotDraw) {
  auto request = kQwenImage.plain;
  request.true_cfg = 4;
  EXPECT_THAT(message_of([&] { kQwenImage.drawn(kQwenImage.with(), request); }),
              HasSubstr("no true guidance beside its own"));
  EXPECT_THAT(message_of([&] { kQwenImage.drawn(kQwenImage.with({.tp = 5})); }),
              HasSubstr("tp 5 leaves a rank without a head"));
  request = kQwenImage.plain;
  request.max_sequence_length = 1025;
  EXPECT_THAT(message_of([&] { kQwenImage.drawn(kQwenImage.with(), request); }),
              HasSubstr("should lie between 1 and 1024"));
  request = kQwenImage.plain;
  request.steps = 1;
  EXPECT_THAT(message_of([&] { kQwenImage.drawn(kQwenImage.with(), request); }),
              HasSubstr("steps"));
}

}  // namespace braid::qwen_image_test
