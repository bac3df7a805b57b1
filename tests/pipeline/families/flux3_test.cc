// FLUX.3 through the Family interface: every budget and command on random pipelines of its shapes.
// parity_test.cc checks the numbers against diffusers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "flux3_model.h"
#include "message_of.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/families/flux3/references.h"
#include "pipeline/files/model_folder.h"
#include "pipeline/pictures/check_pictures.h"
#include "pipeline/planner/planner.h"
#include "pipeline/proofs/bench.h"
#include "temporary_folder.h"

namespace braid::flux3_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(Flux3Family, DrawsPromptsOfAnyLengthsAsIfTheyWereAlone) {
  auto request = kFlux3Request;
  request.guidance = 2;
  request.prompts = {"a star", "", *guided_flux3().negative_prompt, "猫と 🎨"};
  request.batch_size = 3;
  const auto together = drawn_flux3(flux3_with(), request);
  for (std::size_t i = 0; i < request.prompts.size(); ++i) {
    auto alone = request;
    alone.prompts = {request.prompts[i]};
    alone.seed = request.seed + i;
    const auto want = drawn_flux3(flux3_with(), alone)["latents_final"];
    EXPECT_LT(flux3_error(together["latents_final"].narrow(0, std::int64_t(i), 1), want), 1e-5)
        << "prompt " << i;
  }
}

TEST(Flux3Family, IsGuidedAgainstAnEmptyPrompt) {
  auto request = kFlux3Request;
  request.guidance.reset();  // 3.5
  auto spelled = request;
  spelled.guidance = 3.5;
  spelled.negative_prompt = "";
  const auto got = drawn_flux3(flux3_with(), request);
  EXPECT_TRUE(at::equal(got["latents_final"], drawn_flux3(flux3_with(), spelled)["latents_final"]));
  EXPECT_GT(flux3_error(got["latents_final"], drawn_flux3(flux3_with())["latents_final"]), 1e-3);
}

// The prompts have one length, but other pads.
TEST(Flux3Family, LetsThePadsOfAPromptBeSeen) {
  auto request = kFlux3Request;
  const auto padded = drawn_flux3(flux3_with(), request);
  EXPECT_EQ(padded["prompt_embeds"].size(1), 80);
  request.max_sequence_length = 50;
  const auto fewer = drawn_flux3(flux3_with(), request);
  EXPECT_EQ(fewer["prompt_embeds"].size(1), 50);
  EXPECT_GT(flux3_error(fewer["velocity_first"], padded["velocity_first"]), 1e-3);
}

TEST(Flux3Family, DrawsWhatIsLeftOfTheCanvasOfOneReference) {
  auto request = kFlux3Request;
  request.width = request.height = std::nullopt;
  request.pictures.references = {some_picture(75, 90)};
  const auto picture = drawn_flux3(flux3_with(), request).pictures.front();
  EXPECT_EQ(std::pair(picture.width, picture.height), std::pair(75, 90));
  request.height = 64;  // the other side is the canvas's
  const auto sized = drawn_flux3(flux3_with(), request).pictures.front();
  EXPECT_EQ(std::pair(sized.width, sized.height), std::pair(80, 64));
  request.pictures.references.push_back(some_picture(40, 50));
  request.height = std::nullopt;
  const auto of_two = drawn_flux3(flux3_with(), request).pictures.front();
  EXPECT_EQ(std::pair(of_two.width, of_two.height), std::pair(64, 80));
}

// Computed with diffusers' Flux3ImageProcessor.
TEST(Flux3Family, FitsALoneReferenceAsTheReferenceDoes) {
  const auto family = named_family("flux3-klein");
  const auto& taken = family->description().limits.pictures;
  struct Fit {
    int width, height, canvas_width, canvas_height;
    Region region;
  };
  for (const auto& f :
       {Fit{75, 90, 80, 96, {2, 3, 75, 90}}, Fit{15, 90, 64, 96, {24, 3, 15, 90}},
        Fit{3000, 2000, 2496, 1664, {0, 0, 2496, 1664}}, Fit{5000, 40, 4096, 64, {0, 15, 4096, 33}},
        Fit{2049, 2047, 2048, 2048, {4, 5, 2039, 2037}}, Fit{1, 1, 64, 64, {31, 31, 1, 1}}}) {
    const auto picture = some_picture(f.width, f.height);
    const auto canvas = taken.lone_reference->fit(picture);
    EXPECT_EQ(std::pair(canvas.width, canvas.height), std::pair(f.canvas_width, f.canvas_height))
        << f.width << "x" << f.height;
    const auto got = taken.lone_reference->region(picture);
    EXPECT_EQ(std::tuple(got.left, got.top, got.width, got.height),
              std::tuple(f.region.left, f.region.top, f.region.width, f.region.height))
        << f.width << "x" << f.height;
  }
}

// The processor's grid has 16 pixels, also where tokens have 8.
TEST(Flux3Family, FitsReferencesToTheProcessorsGrid) {
  const auto taken = flux3_pictures(8);
  const auto canvas = taken.lone_reference->fit(some_picture(98, 150));
  EXPECT_EQ(std::pair(canvas.width, canvas.height), std::pair(112, 160));
  const auto region = taken.lone_reference->region(some_picture(98, 150));
  EXPECT_EQ(std::pair(region.left, region.top), std::pair(7, 5));
  const auto cropped = taken.fit_reference(some_picture(98, 150));
  EXPECT_EQ(std::pair(cropped.width, cropped.height), std::pair(96, 144));
}

TEST(Flux3Family, RunsEveryLayoutInBfloat16) {
  const auto exact = drawn_flux3(flux3_with(), guided_flux3());
  auto one = flux3_with();
  one.dtype = Dtype::kBfloat16;
  const auto from = drawn_flux3(one, guided_flux3());
  for (const Layout& layout : {Layout{.tp = 2, .text = TextRanks::kShared}, Layout{.tp = 4},
                               Layout{.ring = 2}, Layout{.pp = 2}, Layout{.cfg = 2}}) {
    auto options = flux3_with(layout);
    options.dtype = Dtype::kBfloat16;
    const auto got = drawn_flux3(options, guided_flux3());
    EXPECT_TRUE(at::equal(got["latents_initial"], from["latents_initial"]));
    const auto error = (got["velocity_first"] - from["velocity_first"]).norm();
    EXPECT_LT((error / from["velocity_first"].norm()).item<double>(), 0.05);
  }
  // drawn in float32, then rounded
  EXPECT_TRUE(at::equal(from["latents_initial"],
                        exact["latents_initial"].to(at::kBFloat16).to(at::kFloat)));
}

TEST(Flux3Family, KeepsItsBitsWhereverItsWeightsAre) {
  const auto resident = drawn_flux3(flux3_with(), guided_flux3());
  const auto alone = drawn_flux3(flux3_with());
  for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kLeaf}) {
    const Memory memory{.offload = {.transformer = mode, .text = mode, .vae = mode}};
    const Engine engine(flux3_with({}, memory), {});
    const auto latents = [&](const Request& request) {
      return engine.generate(request, {}, {.record = RecordTensors::kYes})
          .facts.recording.at("latents_final");
    };
    const auto with = latents(guided_flux3());  // then its references' blocks are not used
    const auto without = latents(kFlux3Request);
    EXPECT_TRUE(at::equal(with, resident["latents_final"])) << int(mode);
    EXPECT_TRUE(at::equal(without, alone["latents_final"])) << int(mode);
  }
}

// The first block tells whether the others may be left out. It is one of the image: the text's do
// the same in every step.
TEST(Flux3Family, LeavesOutBlocksThatWouldRepeatThemselves) {
  auto options = flux3_with();
  auto request = guided_flux3();
  request.steps = 4;
  const auto plain = drawn_flux3(flux3_with(), request);
  options.cache = {.mode = CacheMode::kFirstBlock, .threshold = 1e9};
  const auto cached = drawn_flux3(options, request);
  EXPECT_TRUE(at::equal(cached["velocity_first"], plain["velocity_first"]));
  EXPECT_GT(flux3_error(cached["latents_final"], plain["latents_final"]), 1e-4);
  options.cache.threshold = 1e-6;
  EXPECT_LT(flux3_error(drawn_flux3(options, request)["latents_final"], plain["latents_final"]),
            1e-6);
}

TEST(Flux3Family, IsConvertedToTheWeightsThatItsQuantisationHas) {
  const Memory int8{.quantize = Quantize::kInt8, .quantize_text = Quantize::kInt8};
  const auto quantised = drawn_flux3(flux3_with({}, int8));
  EXPECT_GT(flux3_error(quantised["latents_final"], drawn_flux3(flux3_with())["latents_final"]), 0);
  const TemporaryFolder scratch;
  convert(
      {.model = kFlux3Model, .out = scratch / "int8", .dtype = Dtype::kFloat32, .memory = int8});
  EXPECT_TRUE(is_there(scratch / "int8" / kModularIndex));
  auto converted = flux3_with();
  converted.model = scratch / "int8";
  EXPECT_TRUE(at::equal(quantised["latents_final"], drawn_flux3(converted)["latents_final"]));
}

TEST(Flux3Family, SharesQuantisedWeightsToTheSameCodes) {
  const Memory int8{.quantize = Quantize::kInt8};
  const auto one = drawn_flux3(flux3_with({}, int8));
  const auto got = drawn_flux3(flux3_with({.tp = 2}, int8));
  EXPECT_LT(flux3_error(got["velocity_first"], one["velocity_first"]), 1e-5);
}

TEST(Flux3Family, IsConvertedToOneFileAndBack) {
  const TemporaryFolder scratch;
  convert({.model = kFlux3Model,
           .out = scratch / "one.safetensors",
           .form = ConvertOptions::Form::kSingleFile});
  auto in_one_file = flux3_with();
  in_one_file.model = scratch / "one.safetensors";
  in_one_file.components = kFlux3Model;
  const auto want = drawn_flux3(flux3_with());
  EXPECT_TRUE(at::equal(drawn_flux3(in_one_file)["latents_final"], want["latents_final"]));
  convert({.model = in_one_file.model, .components = kFlux3Model, .out = scratch / "back"});
  auto back = flux3_with();
  back.model = scratch / "back";
  EXPECT_TRUE(at::equal(drawn_flux3(back)["latents_final"], want["latents_final"]));
}

TEST(Flux3Family, IsTimed) {
  const auto timed =
      bench(deploy(flux3_with({.tp = 2})),
            {.probe = {.width = 112, .height = 80, .max_sequence_length = 40}, .runs = 1});
  EXPECT_EQ(timed.tokens, 35 + 40);
}

// As published. Layers of the text encoder after the last state are not needed.
TEST(Flux3Family, IsPlannedByName) {
  const auto job = surveyed(*named_job("flux3-klein-base"));
  const auto parameters = [&](Part::Role role) {
    std::int64_t sum = 0;
    for (const auto& tensor : job.tensors->of(role).tensors) sum += numbers_of(tensor, 1);
    return sum;
  };
  EXPECT_EQ(parameters(Part::Role::kDenoiser), 5'538'458'368);
  EXPECT_EQ(parameters(Part::Role::kText), std::int64_t(32) * 100'930'816);
  EXPECT_EQ(job.branches, 2);
  EXPECT_EQ(job.steps, 50);
  EXPECT_EQ(job.text_tokens, 560);
  const auto distilled = *named_job("flux3-klein");
  EXPECT_EQ(distilled.branches, 1);
  EXPECT_EQ(distilled.steps, 16);
  EXPECT_EQ(distilled.image_tokens(), 4096);
}

// Computed by diffusers' scheduler.
TEST(Flux3Family, HasItsSchedule) {
  const auto sigmas =
      named_family("flux3-klein")->schedule(16, {.width = 1024, .height = 1024}, true).sigmas;
  const std::vector<float> want = {1,      .9905F, .9798F, .9678F, .9541F, .9384F,
                                   .9203F, .8991F, .8739F, .8435F, .8061F, .7590F,
                                   .6979F, .6153F, .4975F, .3160F, 0};
  EXPECT_THAT(sigmas, testing::Pointwise(testing::FloatNear(6e-5F), want));
}

// The error for a model with other values in one of its JSON files.
std::string refusal_of_changed_flux3(const fs::path& from, const char* file, const Json& values) {
  const TemporaryFolder scratch;
  const auto model = scratch / "model";
  fs::copy(from, model, fs::copy_options::recursive);
  auto json = read_json(model / file);
  json.merge_patch(values);
  write_file(model / file, json.dump());
  auto options = flux3_with();
  options.model = model;
  return message_of([&] { drawn_flux3(options); });
}

TEST(Flux3Family, RefusesConfigsThatDoNotFitOrAreNotImplemented) {
  const char* const transformer = "transformer/config.json";
  EXPECT_THAT(refusal_of_changed_flux3(kFlux3Model, transformer, {{"joint_attention_dim", 96}}),
              HasSubstr("takes embedded text of width 96, the text encoder makes 8 x 16"));
  EXPECT_THAT(refusal_of_changed_flux3(kFlux3Model, transformer, {{"cond_in_channels", 16}}),
              HasSubstr("32 channels of the picture and 16 of references"));
  EXPECT_THAT(refusal_of_changed_flux3(kFlux3Model, "text_encoder/config.json",
                                       {{"text_config", {{"num_hidden_layers", 31}}}}),
              HasSubstr("the text encoder has 31 layers: there is no hidden state 32"));
  EXPECT_THAT(refusal_of_changed_flux3(kFlux3Map, "model_index.json",
                                       {{"_class_name", "Flux3DistilledModularPipeline"}}),
              "");
  EXPECT_THAT(refusal_of_changed_flux3(kFlux3Model, kModularIndex,
                                       {{"_class_name", "Flux3DistilledModularPipeline"}}),
              HasSubstr("should be a flow map"));
  EXPECT_THAT(refusal_of_changed_flux3(kFlux3Model, kModularIndex, {{"vae", nullptr}}),
              HasSubstr("has no 'vae'"));
  EXPECT_THAT(refusal_of_changed_flux3(kFlux3Model, kModularIndex, {{"vae", {"diffusers"}}}),
              HasSubstr("should name the class of 'vae'"));
  EXPECT_THAT(refusal_of_changed_flux3(kFlux3Model, kModularIndex, {{"_class_name", "Flux4"}}),
              HasSubstr("it describes a Flux4"));
}

TEST(Flux3Family, ReadsBoxesBehindThePrompt) {
  auto request = kFlux3Request;
  request.prompts = {"a <cat>"};
  request.boxes = R"([{"id":"cat","bbox":[0,0,500,500],"desc":"grey"}])";
  const auto got = drawn_flux3(flux3_with(), request);
  auto spelled = kFlux3Request;
  spelled.prompts = {R"(a <cat> [{"id": "cat", "bbox": [0, 0, 500, 500], "desc": "grey"}])"};
  EXPECT_TRUE(at::equal(got["latents_final"], drawn_flux3(flux3_with(), spelled)["latents_final"]));
  EXPECT_EQ(got.pictures.front().prompt, spelled.prompts.front());
  request.prompts.push_back("a <dog>");
  EXPECT_THAT(message_of([&] { drawn_flux3(flux3_with(), request); }), HasSubstr("cites <dog>"));
}

TEST(Flux3Family, RefusesRequestsThatItCannotDraw) {
  const auto refusal = [](const Request& request, const fs::path& model = kFlux3Model) {
    return message_of([&] { drawn_flux3(flux3_with({}, {}, model), request); });
  };
  auto request = kFlux3Request;
  request.width = 100;
  EXPECT_THAT(refusal(request), HasSubstr("the width should be a multiple of 16, it is 100"));
  request = kFlux3Request;
  request.true_cfg = 4;
  EXPECT_THAT(refusal(request), HasSubstr("no true guidance beside its own"));
  request = kFlux3Request;
  request.negative_prompt = "blurry";
  EXPECT_THAT(refusal(request, kFlux3Map), HasSubstr("no negative prompt"));
  request = kFlux3Request;
  request.max_sequence_length = 8193;
  EXPECT_THAT(refusal(request), HasSubstr("maximum sequence length"));
  request = kFlux3Request;
  request.pictures.references = {some_picture(15, 90), some_picture(64, 64)};
  EXPECT_THAT(refusal(request), HasSubstr("at least 16 pixels per side, one has 15x90"));
}

}  // namespace braid::flux3_test
