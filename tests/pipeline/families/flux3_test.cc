// FLUX.3 through the Family interface: what it does as no other family. every_family_test.cc has
// what all do; parity_test.cc checks the numbers against diffusers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "edit_json.h"
#include "message_of.h"
#include "pictures.h"
#include "pipeline/families/flux3/references.h"
#include "pipeline/files/found_files.h"
#include "pipeline/files/model_folder.h"
#include "pipeline/planner/named_job.h"
#include "pipeline/planner/planner.h"
#include "pipeline/request/check_pictures.h"
#include "predicted.h"
#include "small_models.h"
#include "temporary_folder.h"

namespace braid::flux3_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A flow map of 3 heads, 1 and 3 blocks.
const SmallModel kFlux3Map = [] {
  auto map = kFlux3;
  map.folder = small_pipeline("flux3-map");
  return map;
}();

TEST(Flux3Family, IsGuidedAgainstAnEmptyPrompt) {
  auto request = kFlux3.plain;
  request.guidance.reset();  // 3.5
  auto spelled = request;
  spelled.guidance = 3.5;
  spelled.negative_prompt = "";
  const auto got = kFlux3.drawn(kFlux3.with(), request);
  EXPECT_TRUE(
      at::equal(got["latents_final"], kFlux3.drawn(kFlux3.with(), spelled)["latents_final"]));
  EXPECT_GT(relative_error(got["latents_final"], kFlux3.drawn(kFlux3.with())["latents_final"]),
            1e-3);
}

// As diffusers loads a part that the index names. The class's own scale is 7.5.
TEST(Flux3Family, IsGuidedAsTheGuiderInItsFolderSays) {
  const TemporaryFolder folder;
  const auto model = folder / "model";
  fs::copy(kFlux3.folder, model, fs::copy_options::recursive);
  fs::create_directory(model / "guider");
  const auto scale = [&](const Json& guider) {
    write_file(model / "guider/guider_config.json", guider.dump());
    return open_family(find_model({.model = model}).files)->description().limits.defaults.guidance;
  };
  EXPECT_EQ(scale({{"guidance_scale", 2.5}}), 3.5) << "not named";
  edit_json(index_of(model), [](Json& index) {
    index["guider"] = {"diffusers", "ClassifierFreeGuidance", {{"subfolder", "guider"}}};
  });
  EXPECT_EQ(scale({{"_class_name", "ClassifierFreeGuidance"}, {"guidance_scale", 2.5}}), 2.5);
  EXPECT_EQ(scale(Json::object()), 7.5);
  for (const Json& off : {Json(false), Json()})
    EXPECT_EQ(scale({{"guidance_scale", 2.5}, {"enabled", off}}), 1) << off;
  EXPECT_THAT(message_of([&] {
                scale({{"stop", 0.5}});
              }),
              HasSubstr("'stop' should be 1, it is 0.5"));
  EXPECT_THAT(message_of([&] {
                scale({{"use_original_formulation", true}});
              }),
              HasSubstr("'use_original_formulation' should be false"));
  EXPECT_THAT(message_of([&] {
                scale({{"_class_name", "AdaptiveProjectedGuidance"}});
              }),
              HasSubstr("ClassifierFreeGuidance"));
}

// Off only at 1: at 0 the sum is the negative branch alone, at one half it is the mean.
TEST(Flux3Family, IsGuidedBelowOneToo) {
  auto request = kFlux3.plain;
  request.steps = 1;
  const auto latents = [&](std::optional<std::string> negative, double scale) {
    request.negative_prompt = std::move(negative);
    request.guidance = scale;
    return kFlux3.drawn(kFlux3.with(), request)["latents_final"];
  };
  const auto positive = latents({}, 1), none = latents("blurry, two stars", 0);
  const auto half = latents("blurry, two stars", 0.5);
  request.prompts = {"blurry, two stars"};
  const auto negative = latents({}, 1);
  EXPECT_GT(relative_error(positive, negative), 1e-3);
  EXPECT_LT(relative_error(none, negative), 1e-5);
  EXPECT_LT(relative_error(half, (positive + negative) / 2), 1e-5);
}

// The prompts have one length, but other pads.
TEST(Flux3Family, LetsThePadsOfAPromptBeSeen) {
  auto request = kFlux3.plain;
  const auto padded = kFlux3.drawn(kFlux3.with(), request);
  EXPECT_EQ(padded["prompt_embeds"].size(1), 80);
  request.max_sequence_length = 50;
  const auto fewer = kFlux3.drawn(kFlux3.with(), request);
  EXPECT_EQ(fewer["prompt_embeds"].size(1), 50);
  EXPECT_GT(relative_error(fewer["velocity_first"], padded["velocity_first"]), 1e-3);
}

TEST(Flux3Family, DrawsWhatIsLeftOfTheCanvasOfOneReference) {
  auto request = kFlux3.plain;
  request.width = request.height = std::nullopt;
  request.pictures.references = {noise_picture(75, 90)};
  const auto picture = kFlux3.drawn(kFlux3.with(), request).pictures.front();
  EXPECT_EQ(std::pair(picture.width, picture.height), std::pair(75, 90));
  request.height = 64;  // the other side is the canvas's
  const auto sized = kFlux3.drawn(kFlux3.with(), request).pictures.front();
  EXPECT_EQ(std::pair(sized.width, sized.height), std::pair(80, 64));
  request.pictures.references.push_back(noise_picture(40, 50));
  request.height = std::nullopt;
  const auto of_two = kFlux3.drawn(kFlux3.with(), request).pictures.front();
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
    const auto picture = noise_picture(f.width, f.height);
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
  const auto canvas = taken.lone_reference->fit(noise_picture(98, 150));
  EXPECT_EQ(std::pair(canvas.width, canvas.height), std::pair(112, 160));
  const auto region = taken.lone_reference->region(noise_picture(98, 150));
  EXPECT_EQ(std::pair(region.left, region.top), std::pair(7, 5));
  const auto cropped = taken.fit_reference(noise_picture(98, 150));
  EXPECT_EQ(std::pair(cropped.width, cropped.height), std::pair(96, 144));
}

// What is scaled down has fewer pixels per side than what is given.
TEST(Flux3Family, RefusesOneOfSeveralReferencesThatIsTooNarrowWhenItIsScaledDown) {
  const auto limits = named_family("flux3-klein")->description().limits;
  Request request{.prompts = {"a"}, .pictures = {.references = {noise_picture(64, 64)}}};
  auto& references = request.pictures.references;
  references.push_back({.width = 16, .height = 70'000, .rgb = {}});
  references.back().rgb.resize(std::size_t(3) * 16 * 70'000);
  EXPECT_EQ(message_of([&] { check_pictures(request, limits.pictures); }),
            "a reference beside others should have at least 16 pixels per side, one of 16x70000 is "
            "scaled down to a megapixel and has 15x67731");
  references.back() = noise_picture(15, 20);
  EXPECT_THAT(message_of([&] { check_pictures(request, limits.pictures); }),
              HasSubstr("16 pixels per side, one has 15x20"));
  references.back() = noise_picture(16, 20);
  EXPECT_EQ(message_of([&] { check_pictures(request, limits.pictures); }), "");
}

// Each stage knows where a step leads.
TEST(Flux3Family, DrawsAFlowMapOnSeveralRanks) {
  auto request = kFlux3.plain;
  request.guidance.reset();
  request.steps = 4;
  request.pictures.references = {noise_picture(75, 90)};
  const auto one = kFlux3Map.drawn(kFlux3Map.with(), request);
  for (const Layout& layout : {Layout{.tp = 3}, Layout{.ring = 2}, Layout{.pp = 4}})
    expect_as_drawn(kFlux3Map.drawn(kFlux3Map.with(layout), request), one, 1);
}

TEST(Flux3Family, DrawsNoiseInFloat32AndRoundsIt) {
  auto options = kFlux3.with();
  options.dtype = Dtype::kBfloat16;
  const auto exact = kFlux3.drawn(kFlux3.with())["latents_initial"];
  EXPECT_TRUE(
      at::equal(kFlux3.drawn(options)["latents_initial"], exact.to(at::kBFloat16).to(at::kFloat)));
}

// As published. Layers of the text encoder after the last state are not needed.
TEST(Flux3Family, IsPlannedByName) {
  const auto job = surveyed(named_job("flux3-klein-base"));
  EXPECT_EQ(numbers_of_part(job, Part::Role::kDenoiser), 5'538'458'368);
  EXPECT_EQ(numbers_of_part(job, Part::Role::kText), std::int64_t(32) * 100'930'816);
  EXPECT_EQ(job.branches, 2);
  EXPECT_EQ(job.steps, 50);
  EXPECT_EQ(job.text_tokens, 560);
  const auto distilled = named_job("flux3-klein");
  EXPECT_EQ(distilled.branches, 1);
  EXPECT_EQ(distilled.steps, 16);
  EXPECT_EQ(distilled.image_tokens(), 4096);
}

TEST(Flux3Family, IsProbedAsItIsPlanned) {
  const auto deployment = deploy({.synthetic = "flux3-klein", .blocks = {1, 1}});
  const auto job = job_of(deployment, {});
  const auto probe = probe_of({}, deployment);
  EXPECT_EQ(probe.text_tokens, 560);
  EXPECT_EQ(probe.text_tokens, job.text_tokens);
  EXPECT_EQ(probe.size.width, job.width);
  EXPECT_EQ(probe_of({.max_sequence_length = 8192}, deployment).text_tokens, 8192);
}

TEST(Flux3Family, IsProbedInNoSizeThatItRefuses) {
  const auto deployment = deploy({.synthetic = "flux3-klein", .blocks = {1, 1}});
  const auto& limits = deployment.family->description().limits;
  const Request odd{.prompts = {"a"}, .width = 70, .height = 70};
  const auto refusal = message_of([&] { (void)settle(odd, limits, {}); });
  EXPECT_EQ(refusal, "the width should be a multiple of 16, it is 70");
  EXPECT_EQ(message_of([&] { (void)probe_of({.width = 70, .height = 70}, deployment); }), refusal);
  EXPECT_EQ(message_of([&] { (void)probe_of({.width = 64, .height = 80}, deployment); }), "");
}

// Computed by diffusers' scheduler.
TEST(Flux3Family, HasItsSchedule) {
  const auto sigmas = named_family("flux3-klein")
                          ->schedule(16, {.width = 1024, .height = 1024}, StartsFrom::kNoise)
                          .sigmas;
  const std::vector<float> want = {1,      .9905F, .9798F, .9678F, .9541F, .9384F,
                                   .9203F, .8991F, .8739F, .8435F, .8061F, .7590F,
                                   .6979F, .6153F, .4975F, .3160F, 0};
  EXPECT_THAT(sigmas, testing::Pointwise(testing::FloatNear(6e-5F), want));
}

TEST(Flux3Family, RefusesConfigsThatDoNotFitOrAreNotImplemented) {
  const char* const transformer = "transformer/config.json";
  EXPECT_THAT(kFlux3.refusal_with(transformer, {{"joint_attention_dim", 96}}),
              HasSubstr("takes embedded text of width 96, the text encoder makes 8 x 16"));
  EXPECT_THAT(kFlux3.refusal_with(transformer, {{"cond_in_channels", 16}}),
              HasSubstr("32 channels of the picture and 16 of references"));
  EXPECT_THAT(kFlux3.refusal_with("text_encoder/config.json",
                                  {{"text_config", {{"num_hidden_layers", 31}}}}),
              HasSubstr("the text encoder has 31 layers: there is no hidden state 32"));
  EXPECT_THAT(kFlux3Map.refusal_with("model_index.json",
                                     {{"_class_name", "Flux3DistilledModularPipeline"}}),
              "");
  EXPECT_THAT(
      kFlux3.refusal_with(kModularIndex, {{"_class_name", "Flux3DistilledModularPipeline"}}),
      HasSubstr("should be a flow map"));
  EXPECT_THAT(kFlux3.refusal_with(kModularIndex, {{"vae", nullptr}}), HasSubstr("has no 'vae'"));
  EXPECT_THAT(kFlux3.refusal_with(kModularIndex, {{"vae", {"diffusers"}}}),
              HasSubstr("should name the class of 'vae'"));
  EXPECT_THAT(kFlux3.refusal_with(kModularIndex, {{"_class_name", "Flux4"}}),
              HasSubstr("it describes a Flux4"));
}

TEST(Flux3Family, ReadsBoxesBehindThePrompt) {
  auto request = kFlux3.plain;
  request.prompts = {"a <cat>"};
  request.boxes = R"([{"id":"cat","bbox":[0,0,500,500],"desc":"grey"}])";
  const auto got = kFlux3.drawn(kFlux3.with(), request);
  auto spelled = kFlux3.plain;
  spelled.prompts = {R"(a <cat> [{"id": "cat", "bbox": [0, 0, 500, 500], "desc": "grey"}])"};
  EXPECT_TRUE(
      at::equal(got["latents_final"], kFlux3.drawn(kFlux3.with(), spelled)["latents_final"]));
  EXPECT_EQ(got.pictures.front().prompt, spelled.prompts.front());
  request.prompts.push_back("a <dog>");
  EXPECT_THAT(message_of([&] { kFlux3.drawn(kFlux3.with(), request); }), HasSubstr("cites <dog>"));
}

TEST(Flux3Family, RefusesRequestsThatItCannotDraw) {
  const auto refusal = [](const Request& request, const SmallModel& model = kFlux3) {
    return message_of([&] { model.drawn(model.with(), request); });
  };
  auto request = kFlux3.plain;
  request.width = 100;
  EXPECT_THAT(refusal(request), HasSubstr("the width should be a multiple of 16, it is 100"));
  request = kFlux3.plain;
  request.true_cfg = 4;
  EXPECT_THAT(refusal(request), HasSubstr("no true guidance beside its own"));
  request = kFlux3.plain;
  request.negative_prompt = "blurry";
  EXPECT_THAT(refusal(request, kFlux3Map), HasSubstr("no negative prompt"));
  request = kFlux3.plain;
  request.max_sequence_length = 8193;
  EXPECT_THAT(refusal(request), HasSubstr("maximum sequence length"));
  request = kFlux3.plain;
  request.pictures.references = {noise_picture(15, 90), noise_picture(64, 64)};
  EXPECT_THAT(refusal(request), HasSubstr("at least 16 pixels per side, one has 15x90"));
}

}  // namespace braid::flux3_test
