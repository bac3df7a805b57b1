// Qwen-Image through the Family interface: every budget and command on a random pipeline of its
// shapes. parity_test.cc checks the numbers against diffusers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "image/png.h"
#include "message_of.h"
#include "models/qwen_image/model.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/families/qwen_image/qwen_image.h"
#include "pipeline/planner/costs/held.h"
#include "pipeline/planner/costs/memory.h"
#include "pipeline/planner/planner.h"
#include "pipeline/proofs/bench.h"
#include "pipeline/settings.h"
#include "qwen_image_model.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"
#include "weights/paging/cpu_device.h"
#include "weights/paging/order_checker.h"

namespace braid::qwen_image_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(QwenImageFamily, DrawsPromptsOfAnyLengthsAsIfTheyWereAlone) {
  auto request = guided_qwen_image();
  request.prompts = {"a star", "", request.prompts.front(), "猫と 🎨"};
  request.batch_size = 3;
  const auto together = drawn_qwen_image(qwen_image_with(), request);
  for (std::size_t i = 0; i < request.prompts.size(); ++i) {
    auto alone = request;
    alone.prompts = {request.prompts[i]};
    alone.seed = request.seed + i;
    const auto want = drawn_qwen_image(qwen_image_with(), alone)["latents_final"];
    const auto got = together["latents_final"].narrow(0, std::int64_t(i), 1);
    EXPECT_LT(qwen_image_error(got, want), 1e-5) << "prompt " << i;
  }
}

// negative + scale * (positive - negative), on above 1 against a space, whose tokens then get the
// lengths of the positive branch's.
TEST(QwenImageFamily, IsGuidedAboveOneAgainstASpace) {
  auto request = kQwenImageRequest;
  request.steps = 2;  // one alone has no levels
  const auto positive = drawn_qwen_image(qwen_image_with(), request)["velocity_first"];
  request.guidance = 3;
  auto spelled = request;
  spelled.negative_prompt = " ";
  const auto got = drawn_qwen_image(qwen_image_with(), request);
  const auto same = drawn_qwen_image(qwen_image_with(), spelled);
  EXPECT_TRUE(at::equal(got["latents_final"], same["latents_final"]));
  auto space = request;
  space.prompts = {" "};
  space.guidance = 1;
  const auto negative = drawn_qwen_image(qwen_image_with(), space)["velocity_first"];
  auto sum = negative + 3 * (positive - negative);
  sum = sum * (positive.norm(2, {-1}, true) / sum.norm(2, {-1}, true));
  const TrueGuidance guidance{.scale = 3, .kept_channels = 16};
  EXPECT_LT(qwen_image_error(guide({positive, negative}, guidance, 0), sum), 1e-6);
  EXPECT_GT(
      qwen_image_error(got["latents_final"], drawn_qwen_image(qwen_image_with())["latents_final"]),
      1e-3);
}

TEST(QwenImageFamily, RunsEveryLayoutInBfloat16) {
  const auto exact = drawn_qwen_image(qwen_image_with(), guided_qwen_image());
  auto one = qwen_image_with();
  one.dtype = Dtype::kBfloat16;
  const auto from = drawn_qwen_image(one, guided_qwen_image());
  for (const Layout& layout :
       {Layout{.tp = 2}, Layout{.tp = 4}, Layout{.ring = 2}, Layout{.pp = 2}, Layout{.cfg = 2}}) {
    auto options = qwen_image_with(layout);
    options.dtype = Dtype::kBfloat16;
    const auto got = drawn_qwen_image(options, guided_qwen_image());
    EXPECT_TRUE(at::equal(got["latents_initial"], from["latents_initial"]));
    const auto error = (got["velocity_first"] - from["velocity_first"]).norm();
    EXPECT_LT((error / from["velocity_first"].norm()).item<double>(), 0.05);
  }
  EXPECT_FALSE(at::equal(from["latents_initial"], exact["latents_initial"]));
}

TEST(QwenImageFamily, KeepsItsBitsWhereverItsWeightsAre) {
  const auto resident = drawn_qwen_image(qwen_image_with(), guided_qwen_image());
  for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kLeaf}) {
    const Memory memory{.offload = {.transformer = mode, .text = mode, .vae = mode}};
    const auto got = drawn_qwen_image(qwen_image_with({}, memory), guided_qwen_image());
    EXPECT_TRUE(at::equal(got["latents_final"], resident["latents_final"])) << int(mode);
  }
}

TEST(QwenImageFamily, LeavesOutBlocksThatWouldRepeatThemselves) {
  auto options = qwen_image_with();
  options.cache = {.mode = CacheMode::kFirstBlock, .threshold = 1e9};
  auto request = guided_qwen_image();
  request.steps = 4;
  const auto cached = drawn_qwen_image(options, request);
  const auto plain = drawn_qwen_image(qwen_image_with(), request);
  EXPECT_TRUE(at::equal(cached["velocity_first"], plain["velocity_first"]));
  EXPECT_GT(qwen_image_error(cached["latents_final"], plain["latents_final"]), 1e-4);
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
  const auto job = surveyed({.family = probe.family, .dtype = at::kFloat});
  for (auto how : {Paging{.level = PageLevel::kBlock}, Paging{.level = PageLevel::kLeaf}}) {
    const auto checker = std::make_shared<OrderChecker>(std::make_shared<CpuPageDevice>());
    how.pages = std::make_shared<Pages>(checker, at::kCPU, PageOptions{.prefetch = 1});
    const QwenImage model(config, Weights::synthetic({.paging = how}));
    how.pages->finish();
    const auto mode = how.level == PageLevel::kBlock ? OffloadMode::kBlock : OffloadMode::kLeaf;
    const auto planned = pages_of(job.tensors->of(Part::Role::kDenoiser), {}, {.offload = mode});
    const auto of_steps = copied_bytes(planned, {.resident = 0}, PageUse::kRepeated);
    const auto once = copied_bytes(planned, {.resident = 0}, PageUse::kOnce);
    EXPECT_GT(once, 3 * 12 * 24 * 24 * 4);
    checker->enter_loop();
    for (int picture = 0; picture < 2; ++picture) {
      auto in = inputs_of(probe, 1, at::kCPU);
      in.modulations_BM = model.modulations({model.condition(in)}).front();
      for (int i = 0; i < 2; ++i) (void)model.advance(in, {});
      const auto before = how.pages->bytes_copied();
      for (int i = 0; i < 3; ++i) (void)model.advance(in, {});
      // Plans count every block in every step; one that still has its slot is not copied again.
      const auto copied = how.pages->bytes_copied() - before;
      EXPECT_GT(copied, 0) << picture;
      EXPECT_LE(copied, 3 * of_steps) << picture;
    }
    checker->leave_loop();
    EXPECT_THAT(checker->hazards(), testing::IsEmpty());
  }
}

// 12 vectors of 3072 in each of 60 blocks, and two for the last norm.
TEST(QwenImageFamily, PlansTheModulationsThatAreHeldForAllSteps) {
  const auto job = surveyed(*named_job("qwen-image"));
  const auto bytes = predict_bytes(job, {}, 0, whole_transformer(job.shape()));
  EXPECT_EQ(bytes.modulations, std::int64_t(2) * 50 * (60 * 12 + 2) * 3072 * 2);
}

TEST(QwenImageFamily, IsConvertedToTheWeightsThatItsQuantisationHas) {
  const Memory int8{.quantize = Quantize::kInt8, .quantize_text = Quantize::kInt8};
  const auto quantised = drawn_qwen_image(qwen_image_with({}, int8));
  EXPECT_GT(qwen_image_error(quantised["latents_final"],
                             drawn_qwen_image(qwen_image_with())["latents_final"]),
            0);
  const TemporaryFolder scratch;
  convert({.model = kQwenImageModel,
           .out = scratch / "int8",
           .dtype = Dtype::kFloat32,
           .memory = int8});
  auto converted = qwen_image_with();
  converted.model = scratch / "int8";
  EXPECT_TRUE(at::equal(quantised["latents_final"], drawn_qwen_image(converted)["latents_final"]));
}

TEST(QwenImageFamily, SharesQuantisedWeightsToTheSameCodes) {
  const Memory int8{.quantize = Quantize::kInt8};
  const auto one = drawn_qwen_image(qwen_image_with({}, int8));
  for (const int tp : {2, 4}) {
    const auto got = drawn_qwen_image(qwen_image_with({.tp = tp}, int8));
    EXPECT_LT(qwen_image_error(got["velocity_first"], one["velocity_first"]), 1e-5) << tp;
  }
}

TEST(QwenImageFamily, IsConvertedToOneFileAndBack) {
  const TemporaryFolder scratch;
  convert({.model = kQwenImageModel,
           .out = scratch / "one.safetensors",
           .form = ConvertOptions::Form::kSingleFile});
  auto in_one_file = qwen_image_with();
  in_one_file.model = scratch / "one.safetensors";
  in_one_file.components = kQwenImageModel;
  const auto want = drawn_qwen_image(qwen_image_with());
  EXPECT_TRUE(at::equal(drawn_qwen_image(in_one_file)["latents_final"], want["latents_final"]));
  convert({.model = in_one_file.model, .components = kQwenImageModel, .out = scratch / "back"});
  auto back = qwen_image_with();
  back.model = scratch / "back";
  EXPECT_TRUE(at::equal(drawn_qwen_image(back)["latents_final"], want["latents_final"]));
}

TEST(QwenImageFamily, IsTimed) {
  const auto timed =
      bench(deploy(qwen_image_with({.tp = 2})),
            {.probe = {.width = 112, .height = 80, .max_sequence_length = 40}, .runs = 1});
  EXPECT_EQ(timed.tokens, 35 + 40);
}

// These are the published ones. The text encoder's tower is not loaded, nor its vocabulary's head;
// its table of tokens stays in the file.
TEST(QwenImageFamily, IsPlannedByName) {
  for (const auto* name : {"qwen-image", "qwen-image-2512"}) {
    const auto job = surveyed(*named_job(name));
    const auto parameters = [&](Part::Role role) {
      std::int64_t sum = 0;
      for (const auto& tensor : job.tensors->of(role).tensors) sum += numbers_of(tensor, 1);
      return sum;
    };
    EXPECT_EQ(parameters(Part::Role::kDenoiser), 20'430'401'088);
    EXPECT_EQ(parameters(Part::Role::kText), 7'070'619'136 - std::int64_t(152'064) * 3584);
    EXPECT_EQ(job.branches, 2);
    EXPECT_EQ(job.steps, 50);
    EXPECT_EQ(job.image_tokens(), 4096);
  }
}

// Computed by diffusers' scheduler.
TEST(QwenImageFamily, HasASchedule) {
  const auto sigmas = [](int steps, PictureSize size) {
    return named_family("qwen-image")->schedule(steps, size, true).sigmas;
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
       plan_layouts(*named_job("qwen-image"), {many, link_of(many), link_of(many)}))
    reasons.push_back(layout.reason);
  EXPECT_THAT(reasons, testing::Contains(HasSubstr("without a head: the transformer has 24")));
}

// The error for the model with other values in one of its JSON files.
std::string refusal_of_changed(const char* file, const Json& values) {
  const TemporaryFolder scratch;
  const auto model = scratch / "model";
  fs::copy(kQwenImageModel, model, fs::copy_options::recursive);
  auto json = read_json(model / file);
  json.merge_patch(values);
  write_file(model / file, json.dump());
  auto options = qwen_image_with();
  options.model = model;
  return message_of([&] { drawn_qwen_image(options); });
}

TEST(QwenImageFamily, RefusesConfigsThatDoNotFitOrAreNotImplemented) {
  const char* const transformer = "transformer/config.json";
  const char* const text = "text_encoder/config.json";
  EXPECT_EQ(refusal_of_changed(transformer, {{"pooled_projection_dim", 768}}), "");
  EXPECT_THAT(refusal_of_changed(transformer, {{"guidance_embeds", true}}),
              HasSubstr("'guidance_embeds' should be false"));
  EXPECT_THAT(refusal_of_changed(transformer, {{"joint_attention_dim", 12}}),
              HasSubstr("takes embedded text of width 12, the text encoder makes 24"));
  EXPECT_THAT(refusal_of_changed(transformer, {{"in_channels", 8}}),
              HasSubstr("tokens of 8 and makes ones of 16 channels"));
  EXPECT_THAT(refusal_of_changed(text, {{"model_type", "qwen3_vl"}}),
              HasSubstr("should be qwen2_5_vl, it is 'qwen3_vl'"));
  EXPECT_THAT(refusal_of_changed(
                  text, {{"text_config", {{"rope_parameters", {{"mrope_section", {1, 1}}}}}}}),
              HasSubstr("'mrope_section' should be 3 numbers"));
  EXPECT_THAT(refusal_of_changed(text, {{"vision_config", {{"window_size", 100}}}}),
              HasSubstr("'window_size', 100, should be a multiple"));
  EXPECT_THAT(refusal_of_changed("vae/config.json", {{"attn_scales", {1.0}}}),
              HasSubstr("'attn_scales' should be empty"));
  EXPECT_THAT(refusal_of_changed("model_index.json", {{"_class_name", "QwenPipeline"}}),
              HasSubstr("it describes a QwenPipeline"));
  for (const auto* name : {"QwenImageControlNetPipeline", "QwenImageControlNetInpaintPipeline"})
    EXPECT_EQ(refusal_of_changed("model_index.json", {{"_class_name", name}}), "");
}

// The pictures of qwen-image-edit; a token is 32 pixels wide.
Request edit_request() {
  const auto folder = kQwenImageModel.parent_path().parent_path() / "qwen-image-edit";
  const auto path = folder / "reference0.png";
  return {.prompts = {"a star"},
          .steps = 2,
          .guidance = 1,
          .pictures = {.references = {decode_png(read_file(path), path.string())}}};
}

PipelineOptions editing(const char* name, const Layout& layout = {}) {
  auto options = qwen_image_with(layout);
  options.model = kQwenImageModel.parent_path().parent_path() / name / "model";
  return options;
}

// About a megapixel in the shape of the last reference: of 60x44 pixels, and of 40x90.
TEST(QwenImageEdit, DrawsInTheShapeOfTheLastReference) {
  auto request = edit_request();
  const auto limits = open_family(find_model(editing("qwen-image-edit")))->description().limits;
  auto settings = settle(request, limits, {});
  EXPECT_EQ(settings.width, 1184);
  EXPECT_EQ(settings.height, 864);
  auto tall = request.pictures.references.front();
  std::swap(tall.width, tall.height);
  request.pictures.references.push_back(tall);
  EXPECT_THAT(message_of([&] { settle(request, limits, {}); }), HasSubstr("1 reference at most"));
  const auto plus = open_family(find_model(editing("qwen-image-edit-plus")))->description().limits;
  settings = settle(request, plus, {});
  EXPECT_EQ(settings.width, 864);
  EXPECT_EQ(settings.height, 1184);
  request.pictures = {};
  EXPECT_THAT(message_of([&] { settle(request, plus, {}); }),
              HasSubstr("this model edits pictures: it needs a reference"));
  request.pictures = {.init = edit_request().pictures.references.front()};
  EXPECT_THROW(settle(request, plus, {}), InputError);
}

// References, at timestep 0, are split over ranks like the noise.
TEST(SlowQwenImageEdit, LooksAtReferencesUnderEveryLayout) {
  auto request = edit_request();
  request.width = 96;
  request.height = 64;
  const auto one = drawn_qwen_image(editing("qwen-image-edit-plus"), request);
  for (const Layout& layout : {Layout{.tp = 2}, Layout{.ring = 2}, Layout{.ulysses = 2},
                               Layout{.pp = 2}, Layout{.tp = 2, .pp = 2}}) {
    const auto got = drawn_qwen_image(editing("qwen-image-edit-plus", layout), request);
    EXPECT_LT(qwen_image_error(got["velocity_first"], one["velocity_first"]), 1e-5);
    EXPECT_LT(qwen_image_error(got["latents_final"], one["latents_final"]), 1e-5);
  }
}

// Layers of the image's modulations are applied to two timesteps.
TEST(QwenImageEdit, PlansTheModulationsOfReferences) {
  const auto job = surveyed(*named_job("qwen-image-edit-2511"));
  const auto bytes = predict_bytes(job, {}, 0, whole_transformer(job.shape()));
  EXPECT_EQ(bytes.modulations, std::int64_t(2) * 50 * (60 * 18 + 2) * 3072 * 2);
  const auto& tensors = job.tensors->of(Part::Role::kDenoiser);
  const auto first = stage_of(job.shape(), {.begin = 0, .count = 20});
  const auto last = stage_of(job.shape(), {.begin = 20, .count = 40});
  EXPECT_EQ(num_modulations(job.shape().blocks, tensors, first), 20 * 18 * 3072);
  EXPECT_EQ(num_modulations(job.shape().blocks, tensors, last), (40 * 18 + 2) * 3072);
}

TEST(QwenImageFamily, RefusesRequestsThatItCannotDraw) {
  auto request = kQwenImageRequest;
  request.true_cfg = 4;
  EXPECT_THAT(message_of([&] { drawn_qwen_image(qwen_image_with(), request); }),
              HasSubstr("no true guidance beside its own"));
  EXPECT_THAT(message_of([&] { drawn_qwen_image(qwen_image_with({.tp = 5})); }),
              HasSubstr("tp 5 leaves a rank without a head"));
  request = kQwenImageRequest;
  request.max_sequence_length = 1025;
  EXPECT_THAT(message_of([&] { drawn_qwen_image(qwen_image_with(), request); }),
              HasSubstr("should lie between 1 and 1024"));
  request = kQwenImageRequest;
  request.steps = 1;
  EXPECT_THAT(message_of([&] { drawn_qwen_image(qwen_image_with(), request); }),
              HasSubstr("steps"));
}

}  // namespace braid::qwen_image_test
