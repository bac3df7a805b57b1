// Qwen-Image-Layered through the Family interface. parity_test.cc checks the numbers against
// diffusers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "edit_json.h"
#include "image/png.h"
#include "message_of.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/deployment/degrees.h"
#include "pipeline/families/description.h"
#include "pipeline/files/found_files.h"
#include "pipeline/planner/named_job.h"
#include "pipeline/planner/planner.h"
#include "pipeline/planner/traffic_text.h"
#include "pipeline/proofs/bench.h"
#include "pipeline/proofs/verify.h"
#include "pipeline/request/settings.h"
#include "predicted.h"
#include "small_models.h"
#include "temporary_folder.h"

namespace braid::qwen_image_layered_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kLayeredFolder = small_pipeline("qwen-image-layered").parent_path();

PipelineOptions layered_with(const Layout& layout = {}, const Memory& memory = {}) {
  auto options = kQwenImage.with(layout, memory);
  options.model = kLayeredFolder / "model";
  return options;
}

// A transparent reference of 60x44 pixels; two layers, of 24 tokens each.
Request layered_request() {
  const auto path = kLayeredFolder / "reference0.png";
  auto request = kQwenImage.guided;
  request.width = 96;
  request.height = 64;
  request.layers = 2;
  request.pictures.references = {
      decode_png(read_file(path), path.string(), kMaxPixels, with_alpha)};
  return request;
}

RequestLimits layered_limits() {
  return open_family(find_model(layered_with()).files)->description().limits;
}

std::string refusal_of_request(const Request& request) {
  return message_of([&] { settle(request, layered_limits(), {}); });
}

TEST(QwenImageLayered, ReturnsLayersWithAlphaFromTheLowestUp) {
  auto request = layered_request();
  request.num_images = 2;
  int told = 0;
  const Engine engine(layered_with(), {});
  const auto pictures = engine.generate(request, {.picture = [&](Picture&) { ++told; }}).pictures;
  ASSERT_EQ(pictures.size(), 4u);
  EXPECT_EQ(told, 4);
  for (int i = 0; i < 4; ++i) {
    const auto& picture = pictures[std::size_t(i)];
    EXPECT_EQ(picture.frame, i % 2);
    EXPECT_EQ(picture.num_frames, 2);
    EXPECT_EQ(picture.frames_per_second, 0);
    EXPECT_EQ(picture.channels(), 4);
    EXPECT_EQ(picture.seed, 5u + unsigned(i / 2));
  }
  EXPECT_NE(pictures[0].rgb, pictures[1].rgb);
  EXPECT_NE(pictures[0].rgb, pictures[2].rgb);
}

// Items are first in what is drawn, the whole picture before its layers; that one is not decoded.
TEST(QwenImageLayered, DropsTheWholePictureThatItDrawsFirst) {
  const auto family = open_family(find_model(layered_with()).files);
  const PictureSize size{.width = 96, .height = 64, .frames = 3};
  EXPECT_EQ(family->latent_shape(size), (std::vector<std::int64_t>{3, 3, 8, 12}));
  EXPECT_EQ(family->num_tokens(size), 3 * 24);
  const auto latents = at::randn({2, 3, 3, 8, 12});
  const auto tokens = family->pack(latents);
  EXPECT_EQ(tokens.sizes(), (std::vector<std::int64_t>{2, 3 * 24, 12}));
  // channels, then rows and columns of the token in row 1, column 2 of item 2
  const auto want = latents[1][2].narrow(1, 2, 2).narrow(2, 4, 2).flatten();
  EXPECT_TRUE(at::equal(tokens[1][2 * 24 + 1 * 6 + 2], want));
  EXPECT_TRUE(at::equal(family->unpack(tokens, size), latents.narrow(1, 1, 2).transpose(1, 2)));
}

// Frames 0, 1 and 2, the reference at -1, rows and columns from the centre, text behind the rows
// and columns of all items, or behind the items if these are more.
TEST(QwenImageLayered, PlacesItemsTheReferenceAndText) {
  const auto family = open_family(find_model(layered_with()).files);
  const auto begun = [&](PictureSize size, int rows, int columns) {
    const Condition condition{.text_BTC = at::zeros({1, 2, 24}), .pooled_BC = {}};
    auto in = family->begin(condition, size, 1, at::TensorOptions(at::kFloat));
    in.references = {family->reference(at::zeros({1, 3, 2 * rows, 2 * columns}), 0)};
    family->arrange(in);
    return in;
  };
  const auto in = begun({.width = 112, .height = 80, .frames = 3}, 5, 7);
  const auto item = [&](int number) { return in.noise.ids_LA.narrow(0, number * 35, 35); };
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(item(i).select(1, 0).eq(i).all().item<bool>());
    EXPECT_TRUE(at::equal(item(i)[0].narrow(0, 1, 2), at::tensor({-3.0F, -4.0F})));
    EXPECT_TRUE(at::equal(item(i)[34].narrow(0, 1, 2), at::tensor({1.0F, 2.0F})));
  }
  const auto& reference = in.references.front().ids_LA;
  EXPECT_TRUE(reference.select(1, 0).eq(-1).all().item<bool>());
  EXPECT_TRUE(at::equal(reference.narrow(1, 1, 2), item(0).narrow(1, 1, 2)));
  EXPECT_TRUE(at::equal(in.text.ids_LA, at::tensor({3.0F, 4.0F}).unsqueeze(1).expand({2, 3})));
  const auto many = begun({.width = 32, .height = 32, .frames = 9}, 2, 2);
  EXPECT_EQ(many.text.ids_LA[0][0].item<float>(), 9);
}

// Computed by diffusers' scheduler.
TEST(QwenImageLayered, HasAScheduleOfItsOwn) {
  const auto sigmas =
      named_family("qwen-image-layered")
          ->schedule(4, {.width = 640, .height = 640, .frames = 5}, StartsFrom::kNoise)
          .sigmas;
  const std::vector<float> want = {1, .86791F, .62377F, .02F, 0};
  EXPECT_THAT(sigmas, testing::Pointwise(testing::FloatNear(6e-6F), want));
  const auto family = named_family("qwen-image-layered");
  EXPECT_DOUBLE_EQ(family->mu({.width = 640, .height = 640, .frames = 5}, 50), 2.5);
  EXPECT_DOUBLE_EQ(family->mu({.width = 1024, .height = 1024, .frames = 2}, 50), 4);
}

TEST(QwenImageLayered, DrawsInTheShapeOfItsReferenceAtAResolution) {
  auto request = layered_request();
  request.width = request.height = std::nullopt;
  request.layers = std::nullopt;
  auto settings = settle(request, layered_limits(), {});
  EXPECT_EQ(settings.width, 736);  // of 60x44: 747.4 and 548.1
  EXPECT_EQ(settings.height, 544);
  EXPECT_EQ(settings.layers(), 4);
  EXPECT_EQ(settings.size().frames, 5);
  request.pictures.resolution = 1024;
  settings = settle(request, layered_limits(), {});
  EXPECT_EQ(settings.width, 1184);  // 1195.8 and 876.9
  EXPECT_EQ(settings.height, 864);
  const auto all = completed(request, settings);
  EXPECT_EQ(all.layers, 4);
  EXPECT_FALSE(all.frames.has_value());
  const auto again = settle(all, layered_limits(), {});
  EXPECT_EQ(again.width, 1184);
  EXPECT_EQ(again.size().frames, 5);
}

TEST(QwenImageLayered, RefusesRequestsThatItCannotDraw) {
  auto request = layered_request();
  request.pictures.references = {{1, 3000, std::vector<std::uint8_t>(9000)}};
  EXPECT_EQ(refusal_of_request(request), "") << "the area of a resolution is not drawn";
  request.width = std::nullopt;
  EXPECT_THAT(refusal_of_request(request), HasSubstr("a reference of 1x3000 pixels is too narrow"));
  request.pictures.references.clear();
  EXPECT_EQ(refusal_of_request(request), "this model takes a picture apart: it needs a reference");
  for (const auto* const empty : {"", " ", "\n\t"}) {
    request = layered_request();
    request.prompts = {"a", empty};
    EXPECT_THAT(refusal_of_request(request), HasSubstr("this model needs a prompt"));
  }
  request = layered_request();
  for (const int layers : {0, -1, 21}) {
    request.layers = layers;
    EXPECT_EQ(refusal_of_request(request),
              text_of("the number of layers should lie between 1 and 20, it is ", layers));
  }
  request = layered_request();
  request.frames = 3;
  EXPECT_THAT(refusal_of_request(request), HasSubstr("ask for layers, not for frames"));
  request = layered_request();
  request.pictures.resolution = 640;
  EXPECT_THAT(refusal_of_request(request), HasSubstr("both a resolution and a size"));
  request.width = request.height = std::nullopt;
  request.pictures.resolution = 800;
  EXPECT_EQ(refusal_of_request(request), "the resolution should be 640 or 1024, it is 800");
  request = layered_request();
  request.pictures.references.push_back(request.pictures.references.front());
  EXPECT_THAT(refusal_of_request(request), HasSubstr("1 reference at most"));
}

TEST(QwenImageLayered, IsTheOnlyOneThatTakesLayersAndResolutions) {
  const auto limits = open_family(find_model(kQwenImage.with()).files)->description().limits;
  const auto refusal = [&](const Request& request) {
    return message_of([&] { settle(request, limits, {}); });
  };
  auto request = kQwenImage.plain;
  request.layers = 1;
  EXPECT_THAT(refusal(request), HasSubstr("this model draws no layers"));
  request = kQwenImage.plain;
  request.width = request.height = std::nullopt;
  request.pictures.resolution = 640;
  EXPECT_THAT(refusal(request), HasSubstr("it takes a width and height, not a resolution"));
}

// Other families of Qwen-Image always keep them.
TEST(QwenImageLayered, KeepsLengthsOfGuidedTokensIfAsked) {
  auto request = layered_request();
  EXPECT_EQ(settle(request, layered_limits(), {}).true_guidance.kept_channels, 0);
  request.cfg_normalize = true;
  EXPECT_EQ(settle(request, layered_limits(), {}).true_guidance.kept_channels, 12);
  const auto plain = open_family(find_model(kQwenImage.with()).files)->description().limits;
  request = kQwenImage.guided;
  EXPECT_EQ(settle(request, plain, {}).true_guidance.kept_channels, 16);
  request.cfg_normalize = false;
  EXPECT_EQ(settle(request, plain, {}).true_guidance.kept_channels, 0);
}

struct NamedLayeredLayout {
  const char* name;
  Layout layout;
};
const NamedLayeredLayout kLayeredLayouts[] = {
    {"Tp4WholeModulation", {.tp = 4, .modulation = SharedModulation::kNo}},
    {"Ring2Ulysses2", {.ring = 2, .ulysses = 2}},
    {"LayerSplit2", {.pp = 2}},
};
const NamedLayeredLayout kMoreLayeredLayouts[] = {
    {"Tp2", {.tp = 2}},
    {"Ring3", {.ring = 3}},
    {"Ring2Gathered", {.ring = 2, .ring_form = RingForm::kGather}},
    {"Ulysses2", {.ulysses = 2}},
    {"Tp2LayerSplit2", {.tp = 2, .pp = 2}},
};

class QwenImageLayeredLayouts : public testing::TestWithParam<NamedLayeredLayout> {};
const auto kNameOf = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(All, QwenImageLayeredLayouts, testing::ValuesIn(kLayeredLayouts), kNameOf);
INSTANTIATE_TEST_SUITE_P(Slow, QwenImageLayeredLayouts, testing::ValuesIn(kMoreLayeredLayouts),
                         kNameOf);

TEST_P(QwenImageLayeredLayouts, EqualOneRank) {
  const auto request = layered_request();
  static const auto one = kQwenImage.drawn(layered_with(), request);
  const auto got = kQwenImage.drawn(layered_with(GetParam().layout), request);
  EXPECT_TRUE(at::equal(got["latents_initial"], one["latents_initial"]));
  EXPECT_LT(relative_error(got["velocity_first"], one["velocity_first"]), 1e-5);
  EXPECT_LT(relative_error(got["latents_final"], one["latents_final"]), 5e-5);
  EXPECT_EQ(got.pictures.size(), 2u);
}

TEST_P(QwenImageLayeredLayouts, AreProven) {
  const auto reference = layered_request().pictures;
  const auto verdict = verify(
      deploy(layered_with(GetParam().layout)),
      {.probe = {.width = 96, .height = 64, .max_sequence_length = 40, .pictures = reference}});
  EXPECT_EQ(verdict.first_divergent(), nullptr);
}

// As many layers as are asked for, and the whole picture; 24 tokens each.
TEST(QwenImageLayered, IsProvenAndTimedWithAnyNumberOfLayers) {
  const auto deployment = deploy(layered_with({.tp = 2}));
  const auto tokens = [&](std::optional<int> layers) {
    return probe_of({.width = 96, .height = 64, .max_sequence_length = 40, .layers = layers},
                    deployment)
        .tokens();
  };
  EXPECT_EQ(tokens({}), 5 * 24 + 40);
  EXPECT_EQ(tokens(1), 2 * 24 + 40);
  EXPECT_EQ(tokens(20), 21 * 24 + 40);
  EXPECT_THAT(message_of([&] { (void)tokens(21); }),
              HasSubstr("the number of layers should lie between 1 and 20, it is 21"));
  EXPECT_THAT(message_of([&] { (void)tokens(0); }), HasSubstr("between 1 and 20, it is 0"));
  const ProbeOptions probe{.width = 96, .height = 64, .max_sequence_length = 40, .layers = 7};
  EXPECT_EQ(verify(deployment, {.probe = probe}).first_divergent(), nullptr);
  EXPECT_EQ(bench(deployment, {.probe = probe, .runs = 1}).tokens, 8 * 24 + 40);
  EXPECT_THAT(message_of([&] { (void)probe_of(probe, deploy(kQwenImage.with())); }),
              HasSubstr("this model draws no layers of a picture"));
}

TEST_P(QwenImageLayeredLayouts, MoveWhatIsPredicted) {
  const auto options = layered_with(GetParam().layout);
  const auto degrees = degrees_of(GetParam().layout);
  auto request = layered_request();
  request.guidance = 1;
  request.negative_prompt = std::nullopt;
  const Engine engine(options, {});
  const auto facts = engine.generate(request, {}, {.record = RecordTensors::kYes}).facts;
  request.max_sequence_length = int(facts.recording.at("prompt_embeds").size(1));
  const auto job = job_of(deploy(options), request);
  EXPECT_EQ(job.image_tokens(), 3 * 24);
  EXPECT_EQ(job.pictures.reference_tokens(), 24);
  const auto stage = stage_of(job.shape(), share_of(job.shape().num_blocks(), 0, degrees.pp));
  EXPECT_EQ(text_of_traffic(facts.step_traffic),
            text_of_traffic(predict_traffic(job, degrees, 0, stage)));
}

TEST(QwenImageLayered, SharesBranchesAndPictures) {
  auto request = layered_request();
  request.num_images = request.batch_size = 2;
  const auto one = kQwenImage.drawn(layered_with(), request);
  for (const Layout& layout : {Layout{.cfg = 2}, Layout{.dp = 2}}) {
    const auto got = kQwenImage.drawn(layered_with(layout), request);
    EXPECT_LT(relative_error(got["latents_final"], one["latents_final"]), 1e-5);
    ASSERT_EQ(got.pictures.size(), 4u);
    EXPECT_EQ(got.pictures[3].frame, 1);
  }
}

TEST(QwenImageLayered, KeepsItsBitsWhereverItsWeightsAre) {
  const auto resident = kQwenImage.drawn(layered_with(), layered_request());
  for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kLeaf}) {
    const Memory memory{.offload = {.transformer = mode, .text = mode, .vae = mode}};
    const auto got = kQwenImage.drawn(layered_with({}, memory), layered_request());
    EXPECT_TRUE(at::equal(got["latents_final"], resident["latents_final"])) << int(mode);
    EXPECT_EQ(got.pictures[1].alpha, resident.pictures[1].alpha) << int(mode);
  }
}

TEST(QwenImageLayered, IsConvertedWithEightBitsAndToOneFile) {
  const TemporaryFolder scratch;
  const Memory int8{.quantize = Quantize::kInt8};
  const auto quantized = kQwenImage.drawn(layered_with({}, int8), layered_request());
  convert({.model = kLayeredFolder / "model",
           .out = scratch / "int8",
           .dtype = Dtype::kFloat32,
           .memory = int8});
  auto converted = layered_with();
  converted.model = scratch / "int8";
  EXPECT_TRUE(at::equal(quantized["latents_final"],
                        kQwenImage.drawn(converted, layered_request())["latents_final"]));
  EXPECT_TRUE(fs::exists(scratch / "int8/processor/preprocessor_config.json"));
  convert({.model = kLayeredFolder / "model",
           .out = scratch / "one.safetensors",
           .form = ConvertOptions::Form::kSingleFile});
  auto in_one_file = layered_with();
  in_one_file.model = scratch / "one.safetensors";
  in_one_file.components = kLayeredFolder / "model";
  const auto want = kQwenImage.drawn(layered_with(), layered_request());
  EXPECT_TRUE(at::equal(kQwenImage.drawn(in_one_file, layered_request())["latents_final"],
                        want["latents_final"]));
  in_one_file.components = kQwenImage.folder;
  EXPECT_THAT(message_of([&] { kQwenImage.drawn(in_one_file, kQwenImage.plain); }),
              HasSubstr("draws no layers, the transformer does"));
}

TEST(QwenImageLayered, IsTimed) {
  const auto timed =
      bench(deploy(layered_with({.tp = 2})),
            {.probe = {.width = 96, .height = 64, .max_sequence_length = 40}, .runs = 1});
  EXPECT_EQ(timed.tokens, 5 * 24 + 40);
}

TEST(QwenImageLayered, IsPlannedByName) {
  const auto job = surveyed(named_job("qwen-image-layered"));
  EXPECT_EQ(numbers_of_part(job, Part::Role::kDenoiser), 20'430'401'088 + 2 * 3072);
  EXPECT_EQ(numbers_of_part(job, Part::Role::kText),
            6'525'621'760);  // without the table of its words
  EXPECT_EQ(job.image_tokens(), 5 * 1600);
  EXPECT_EQ(job.branches, 2);
}

TEST(QwenImageLayered, TellsClientsItsLayers) {
  const auto info = info_of(open_family(find_model(layered_with()).files)->description());
  EXPECT_EQ(info.layers.drawn, 4);
  EXPECT_EQ(info.layers.most, 20);
  EXPECT_EQ(info.layers.resolutions, (std::vector<int>{640, 1024}));
  EXPECT_EQ(info.frames.most, 1);
  EXPECT_TRUE(info.draws_alpha);
}

// The error for the model with other values in one of its JSON files.
std::string refusal_of_changed(const char* file, const Json& values) {
  const TemporaryFolder scratch;
  const auto model = scratch / "model";
  fs::copy(kLayeredFolder / "model", model, fs::copy_options::recursive);
  edit_json(model / file, [&](Json& json) { json.merge_patch(values); });
  auto options = layered_with();
  options.model = model;
  return message_of([&] { kQwenImage.drawn(options, layered_request()); });
}

TEST(QwenImageLayered, RefusesConfigsThatDoNotFit) {
  const char* const transformer = "transformer/config.json";
  EXPECT_THAT(refusal_of_changed(transformer, {{"use_layer3d_rope", false}}),
              HasSubstr("'use_layer3d_rope' should be the same"));
  EXPECT_THAT(refusal_of_changed(transformer,
                                 {{"use_layer3d_rope", false}, {"use_additional_t_cond", false}}),
              HasSubstr("draws layers, the transformer does not"));
  EXPECT_THAT(refusal_of_changed(transformer, {{"zero_cond_t", true}}),
              HasSubstr("'zero_cond_t' should be false where 'use_additional_t_cond' is true"));
  EXPECT_THAT(refusal_of_changed("vae/config.json", {{"input_channels", 3}}),
              HasSubstr("needs an autoencoder of 4 channels, this one has 3"));
  EXPECT_THAT(refusal_of_changed("vae/config.json", {{"input_channels", 5}}),
              HasSubstr("'input_channels'"));
}

}  // namespace braid::qwen_image_layered_test
