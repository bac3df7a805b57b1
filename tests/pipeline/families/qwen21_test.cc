// Qwen-Image-2.1 through the Family interface: every budget and command on a random pipeline of its
// shapes. parity_test.cc checks the numbers against diffusers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "message_of.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/families/qwen21/describe.h"
#include "pipeline/planner/costs/held.h"
#include "pipeline/planner/costs/memory.h"
#include "pipeline/planner/planner.h"
#include "pipeline/proofs/bench.h"
#include "qwen21_model.h"
#include "temporary_folder.h"

namespace braid::qwen21_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(Qwen21Family, DrawsPromptsOfAnyLengthsAsIfTheyWereAlone) {
  auto request = guided_qwen21();
  request.prompts = {"a star", "", request.prompts.front(), "猫と 🎨"};
  request.batch_size = 3;
  const auto together = drawn_qwen21(qwen21_with(), request);
  for (std::size_t i = 0; i < request.prompts.size(); ++i) {
    auto alone = request;
    alone.prompts = {request.prompts[i]};
    alone.seed = request.seed + i;
    const auto want = drawn_qwen21(qwen21_with(), alone)["latents_final"];
    EXPECT_LT(qwen21_error(together["latents_final"].narrow(0, std::int64_t(i), 1), want), 1e-5)
        << "prompt " << i;
  }
}

// On above 1; the empty prompt is the negative one, and is read as a space.
TEST(Qwen21Family, IsGuidedAboveOneAgainstAnEmptyPrompt) {
  auto request = kQwen21Request;
  const auto plain = drawn_qwen21(qwen21_with(), request);
  EXPECT_EQ(plain.pictures.front().channels(), 4);
  request.guidance = 1;
  EXPECT_TRUE(
      at::equal(drawn_qwen21(qwen21_with(), request)["latents_final"], plain["latents_final"]));
  request.guidance = 1.5;
  const auto guided = drawn_qwen21(qwen21_with(), request);
  EXPECT_GT(qwen21_error(guided["latents_final"], plain["latents_final"]), 1e-3);
  for (const char* const negative : {"", " "}) {
    request.negative_prompt = negative;
    EXPECT_TRUE(
        at::equal(drawn_qwen21(qwen21_with(), request)["latents_final"], guided["latents_final"]));
  }
}

TEST(Qwen21Family, KeepsItsBitsWhereverItsWeightsAre) {
  const auto resident = drawn_qwen21(qwen21_with(), guided_qwen21());
  for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kLeaf}) {
    const Memory memory{.offload = {.transformer = mode, .text = mode, .vae = mode}};
    const auto got = drawn_qwen21(qwen21_with({}, memory), guided_qwen21());
    EXPECT_TRUE(at::equal(got["latents_final"], resident["latents_final"])) << int(mode);
  }
}

TEST(Qwen21Family, RunsEveryLayoutInBfloat16) {
  auto one = qwen21_with();
  one.dtype = Dtype::kBfloat16;
  const auto from = drawn_qwen21(one, guided_qwen21());
  for (const Layout& layout : {Layout{.tp = 2, .text = TextRanks::kShared}, Layout{.tp = 4},
                               Layout{.ring = 2}, Layout{.pp = 2}, Layout{.cfg = 2}}) {
    auto options = qwen21_with(layout);
    options.dtype = Dtype::kBfloat16;
    const auto got = drawn_qwen21(options, guided_qwen21());
    EXPECT_TRUE(at::equal(got["latents_initial"], from["latents_initial"]));
    const auto error = (got["velocity_first"] - from["velocity_first"]).norm();
    EXPECT_LT((error / from["velocity_first"].norm()).item<double>(), 0.05);
  }
}

// Bit for bit, in float32: also where queries of the prefix and of the image are computed together.
TEST(Qwen21Family, DrawsTheSameWithItsPrefixKept) {
  auto in_every_step = guided_qwen21();
  in_every_step.pictures.reference_cache = ReferenceCache::kOff;
  EXPECT_TRUE(at::equal(drawn_qwen21(qwen21_with(), in_every_step)["latents_final"],
                        drawn_qwen21(qwen21_with(), guided_qwen21())["latents_final"]));
}

TEST(SlowQwen21Family, DrawsTheSameWithItsReferencesKept) {
  const auto kept = drawn_qwen21(qwen21_with(), qwen21_with_references());
  const auto in_every_step =
      drawn_qwen21(qwen21_with(), qwen21_with_references(ReferenceCache::kOff));
  EXPECT_TRUE(at::equal(in_every_step["latents_final"], kept["latents_final"]));
  auto opaque = qwen21_with_references();
  opaque.pictures.references.front().alpha.clear();
  const auto other = drawn_qwen21(qwen21_with(), opaque);
  EXPECT_GT(qwen21_error(other["latents_final"], kept["latents_final"]), 1e-3);
}

TEST(Qwen21Family, ResizesReferencesToAMegapixel) {
  const auto size = [](int width, int height) {
    const auto fitted = fit_qwen21_reference(
        {.width = width, .height = height, .rgb = std::vector<std::uint8_t>(3 * width * height)});
    return std::pair(fitted.width, fitted.height);
  };
  EXPECT_EQ(size(10, 10), std::pair(1024, 1024));
  EXPECT_EQ(size(60, 44), std::pair(1184, 864));  // 1195.8 x 876.9
  EXPECT_EQ(size(40, 90), std::pair(672, 1536));  // 682.7 x 1536
  EXPECT_THAT(message_of([&] { size(9000, 1); }), HasSubstr("too narrow"));
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

TEST(Qwen21Family, IsConvertedToTheWeightsThatItsQuantisationHas) {
  const Memory int8{.quantize = Quantize::kInt8, .quantize_text = Quantize::kInt8};
  const auto quantised = drawn_qwen21(qwen21_with({}, int8));
  EXPECT_GT(qwen21_error(quantised["latents_final"], drawn_qwen21(qwen21_with())["latents_final"]),
            0);
  const TemporaryFolder scratch;
  convert(
      {.model = kQwen21Model, .out = scratch / "int8", .dtype = Dtype::kFloat32, .memory = int8});
  auto converted = qwen21_with();
  converted.model = scratch / "int8";
  EXPECT_TRUE(at::equal(quantised["latents_final"], drawn_qwen21(converted)["latents_final"]));
}

TEST(Qwen21Family, IsConvertedToOneFileAndBack) {
  const TemporaryFolder scratch;
  convert({.model = kQwen21Model,
           .out = scratch / "one.safetensors",
           .form = ConvertOptions::Form::kSingleFile});
  auto in_one_file = qwen21_with();
  in_one_file.model = scratch / "one.safetensors";
  in_one_file.components = kQwen21Model;
  const auto want = drawn_qwen21(qwen21_with());
  EXPECT_TRUE(at::equal(drawn_qwen21(in_one_file)["latents_final"], want["latents_final"]));
  convert({.model = in_one_file.model, .components = kQwen21Model, .out = scratch / "back"});
  auto back = qwen21_with();
  back.model = scratch / "back";
  EXPECT_TRUE(at::equal(drawn_qwen21(back)["latents_final"], want["latents_final"]));
}

TEST(Qwen21Family, IsTimed) {
  const auto timed =
      bench(deploy(qwen21_with({.tp = 2})),
            {.probe = {.width = 96, .height = 64, .max_sequence_length = 40}, .runs = 1});
  EXPECT_EQ(timed.num_ranks, 2);
}

// As published. The vision tower and the language model have all their layers.
TEST(Qwen21Family, IsPlannedByName) {
  const auto job = surveyed(*named_job("qwen-image-2.1"));
  const auto parameters = [&](Part::Role role) {
    std::int64_t sum = 0;
    for (const auto& tensor : job.tensors->of(role).tensors) sum += numbers_of(tensor, 1);
    return sum;
  };
  EXPECT_EQ(parameters(Part::Role::kDenoiser), 7'115'124'736);
  // With post_quant_conv, and without three convolutions over time.
  EXPECT_EQ(parameters(Part::Role::kDecoder), 259'044'052 + 65 * 64 - 2 * 1153 * 2304 - 577 * 1152);
  EXPECT_EQ(job.branches, 1);
  EXPECT_EQ(job.steps, 40);
  EXPECT_EQ(job.image_tokens(), 4096);
  EXPECT_EQ(named_job("qwen-image-2.1-turbo")->steps, 8);
}

// Two branches of 4096 tokens of text, in each of 32 blocks keys and values of 4096 numbers.
TEST(Qwen21Family, PlansThePrefixThatIsHeld) {
  const auto job = surveyed(*named_job("qwen-image-2.1"));
  const auto bytes = predict_bytes(job, {}, 0, whole_transformer(job.shape()));
  EXPECT_EQ(bytes.kept, std::int64_t(job.text_tokens) * 32 * 2 * 4096 * 2);
  EXPECT_EQ(bytes.modulations, std::int64_t(40) * 9 * 4096 * 2);
}

// Computed by diffusers' scheduler, and Turbo's grid as it is.
TEST(Qwen21Family, HasTheScheduleOfItsKind) {
  const PictureSize size{.width = 1024, .height = 1024};
  const std::vector<float> eight = {1,       .91602F, .82005F, .70929F, .58007F,
                                    .42735F, .24405F, .02F,    0};
  EXPECT_THAT(named_family("qwen-image-2.1")->schedule(8, size, true).sigmas,
              testing::Pointwise(testing::FloatNear(6e-6F), eight));
  const auto turbo = named_family("qwen-image-2.1-turbo");
  const auto& sampling = turbo->description().limits.defaults.sampling;
  const std::vector<float> grid = {1,        .978453F, .95418F,  .926626F, .89508F,
                                   .845148F, .704534F, .414568F, 0};
  EXPECT_EQ(turbo->schedule_as(sampling, 8, size, true).sigmas, grid);
}

// The error for the model with other values in one of its JSON files.
std::string refusal_of_changed_qwen21(const char* file, const Json& values) {
  const TemporaryFolder scratch;
  const auto model = scratch / "model";
  fs::copy(kQwen21Model, model, fs::copy_options::recursive);
  auto json = read_json(model / file);
  json.merge_patch(values);
  write_file(model / file, json.dump());
  auto options = qwen21_with();
  options.model = model;
  return message_of([&] { drawn_qwen21(options); });
}

TEST(Qwen21Family, RefusesConfigsThatDoNotFitOrAreNotImplemented) {
  const char* const transformer = "transformer/config.json";
  EXPECT_THAT(refusal_of_changed_qwen21(transformer, {{"context_in_dim", 12}}),
              HasSubstr("takes embedded text of width 12, the text encoder makes 24"));
  EXPECT_THAT(refusal_of_changed_qwen21(transformer, {{"in_channels", 4}, {"out_channels", 4}}),
              HasSubstr("takes tokens of 4 channels, the autoencoder's latents have 8"));
  EXPECT_THAT(refusal_of_changed_qwen21(transformer, {{"causal_condition", "no"}}),
              HasSubstr("'causal_condition'"));
  EXPECT_THAT(refusal_of_changed_qwen21("vae/config.json", {{"_class_name", "AutoencoderKLWan"}}),
              HasSubstr("'is_residual' should be false"));
  EXPECT_THAT(refusal_of_changed_qwen21("vae/config.json", {{"patch_size", 2}}),
              HasSubstr("'patch_size'"));
  EXPECT_THAT(refusal_of_changed_qwen21("processor/preprocessor_config.json", {{"patch_size", 14}}),
              HasSubstr("'patch_size'"));
  EXPECT_THAT(refusal_of_changed_qwen21("model_index.json", {{"sample_sigmas", {0.5, 0.7}}}),
              HasSubstr("should fall"));
  EXPECT_THAT(refusal_of_changed_qwen21("model_index.json", {{"sample_sigmas", {1.5, 0.7}}}),
              HasSubstr("1.5"));
  EXPECT_THAT(refusal_of_changed_qwen21("model_index.json", {{"_class_name", "QwenImage3"}}),
              HasSubstr("it describes a QwenImage3"));
}

TEST(Qwen21Family, RefusesRequestsThatItCannotDraw) {
  auto request = kQwen21Request;
  request.true_cfg = 4;
  EXPECT_THAT(message_of([&] { drawn_qwen21(qwen21_with(), request); }),
              HasSubstr("no true guidance beside its own"));
  EXPECT_THAT(message_of([&] { drawn_qwen21(qwen21_with({.tp = 5})); }),
              HasSubstr("tp 5 leaves a rank without a head"));
  request = kQwen21Request;
  request.pictures.references.assign(11, qwen21_reference(32, 32, 1, false));
  EXPECT_THAT(message_of([&] { drawn_qwen21(qwen21_with(), request); }),
              HasSubstr("looks at 10 references at most"));
  request = kQwen21Request;
  request.prompts = {"a <|image_pad|>"};
  EXPECT_THAT(message_of([&] { drawn_qwen21(qwen21_with(), request); }),
              HasSubstr("marks the places of 1 pictures"));
}

}  // namespace braid::qwen21_test
