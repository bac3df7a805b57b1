// Z-Image through the Family interface: what it does as no other family. every_family_test.cc has
// what all do; parity_test.cc checks the numbers against diffusers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "copies.h"
#include "edit_json.h"
#include "models/zimage/model.h"
#include "pipeline/families/zimage/zimage.h"
#include "pipeline/planner/costs/memory.h"
#include "pipeline/planner/named_job.h"
#include "pipeline/planner/planner.h"
#include "predicted.h"
#include "small_models.h"

namespace braid::zimage_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(ZImageFamily, IsGuidedAboveZeroAgainstAnEmptyPrompt) {
  auto request = kZImage.plain;
  request.guidance = 0.5;
  auto spelled = request;
  spelled.negative_prompt = "";
  const auto got = kZImage.drawn(kZImage.with(), request);
  EXPECT_TRUE(
      at::equal(got["latents_final"], kZImage.drawn(kZImage.with(), spelled)["latents_final"]));
  EXPECT_GT(relative_error(got["latents_final"], kZImage.drawn(kZImage.with())["latents_final"]),
            1e-4);
}

// All groups but the refiners of text come in every step, each alone in its turn.
TEST(ZImageFamily, CopiesWhatRefinesTextOncePerPicture) {
  const ZImageConfig config{.in_channels = 4,
                            .hidden = 24,
                            .num_heads = 2,
                            .num_layers = 3,
                            .num_refiners = 2,
                            .text_width = 6,
                            .axes = {4, 4, 4}};
  const Probe probe{.family = make_zimage_family({.zimage = config, .vae = {.latent_channels = 4}}),
                    .size = {.width = 32, .height = 32},
                    .text_tokens = 3,
                    .dtype = at::kFloat};
  expect_copies_once_per_picture<ZImage>(config, probe, 1);
}

TEST(ZImageFamily, PlansTheTextThatIsHeldForAllSteps) {
  auto job = surveyed(named_job("z-image"));
  const auto bytes = predict_bytes(job, {}, 0, whole_transformer(job.shape()));
  EXPECT_EQ(bytes.kept, 2 * 512 * 3840 * 2);
  const auto columns = 4 * 3840 * 32 + 3840;  // of two refiners, 30 layers and the last
  EXPECT_EQ(bytes.modulations, std::int64_t(2) * 50 * columns * 2);
  EXPECT_EQ(predict_bytes(job, {.cfg = 2}, 0, whole_transformer(job.shape())).kept, 512 * 3840 * 2);
}

TEST(SlowZImageFamily, DrawsTheSameNoiseForStochasticStepsOnAllRanks) {
  auto request = kZImage.guided;
  request.num_images = request.batch_size = 2;
  const auto drawn = [&](const Layout& layout) {
    auto options = kZImage.with(layout);
    options.model = small_pipeline("zimage-stochastic");
    return kZImage.drawn(options, request);
  };
  const auto one = drawn({});
  const auto plain = kZImage.drawn(kZImage.with(), request);
  EXPECT_GT(relative_error(one["latents_final"], plain["latents_final"]), 0.1);
  for (const Layout& layout : {Layout{.ring = 3}, Layout{.ulysses = 2}, Layout{.pp = 2},
                               Layout{.dp = 2}, Layout{.tp = 2, .cfg = 2}})
    expect_as_drawn(drawn(layout), one, kZImage.magnified);
}

TEST(ZImageFamily, StopsGuidingOnTwoRanksToTheSameBits) {
  auto request = kZImage.guided;
  request.cfg_until = 0.2;
  const auto one = kZImage.drawn(kZImage.with(), request);
  const auto got = kZImage.drawn(kZImage.with({.cfg = 2}), request);
  EXPECT_TRUE(at::equal(got["latents_final"], one["latents_final"]));
  const auto unguided = kZImage.drawn(kZImage.with());
  EXPECT_GT(relative_error(one["latents_final"], unguided["latents_final"]), 1e-3);
}

TEST(ZImageFamily, DrawsNoiseInFloat32) {
  auto options = kZImage.with();
  options.dtype = Dtype::kBfloat16;
  EXPECT_TRUE(at::equal(kZImage.drawn(options)["latents_initial"],
                        kZImage.drawn(kZImage.with())["latents_initial"]));
}

// Z-Image as published.
TEST(ZImageFamily, IsPlannedByName) {
  const auto job = surveyed(named_job("z-image"));
  EXPECT_EQ(numbers_of_part(job, Part::Role::kDenoiser), 6'154'908'736);
  EXPECT_EQ(numbers_of_part(job, Part::Role::kText),
            std::int64_t(35) * 100'930'816);  // without the token table
  EXPECT_EQ(job.branches, 2);
  EXPECT_EQ(job.steps, 50);
  const auto turbo = named_job("z-image-turbo");
  EXPECT_EQ(turbo.branches, 1);
  EXPECT_EQ(turbo.steps, 8);
  EXPECT_EQ(turbo.image_tokens(), 4096);
}

TEST(ZImageFamily, PlansWhatItsHeadsForbid) {
  const auto devices = devices_named("", "32xh100");
  const auto layouts =
      plan_layouts(named_job("z-image-turbo"), {devices, link_of(devices), link_of(devices)});
  std::vector<std::string> reasons;
  for (const auto& layout : layouts) reasons.push_back(layout.reason);
  EXPECT_TRUE(layouts.front().fits());
  EXPECT_THAT(reasons,
              testing::Contains("tp 32 leaves a rank without a head: the transformer has 30"));
}

std::string zimage_refusal(const PipelineOptions& options, const Request& request = kZImage.plain) {
  try {
    kZImage.drawn(options, request);
  } catch (const InputError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(ZImageFamily, RefusesRequestsThatItsTablesOrPartsForbid) {
  auto request = kZImage.plain;
  request.width = 8208;  // 513 tokens
  EXPECT_THAT(zimage_refusal(kZImage.with(), request), HasSubstr("between 16 and 8192"));
  request = kZImage.plain;
  request.prompts_2 = {"a star"};
  EXPECT_THAT(zimage_refusal(kZImage.with(), request), HasSubstr("one text encoder"));
  request = kZImage.plain;
  request.true_cfg = 4;
  EXPECT_THAT(zimage_refusal(kZImage.with(), request),
              HasSubstr("no true guidance beside its own"));
  EXPECT_THAT(zimage_refusal(kZImage.with({.tp = 7})),
              HasSubstr("tp 7 leaves a rank without a head"));
}

TEST(ZImageFamily, RefusesConfigsThatDoNotFitOrAreNotImplemented) {
  const char* transformer = "transformer/config.json";
  EXPECT_THAT(kZImage.refusal_with(transformer, {{"siglip_feat_dim", 1152}}),
              HasSubstr("'siglip_feat_dim' should be null"));
  EXPECT_THAT(kZImage.refusal_with(transformer, {{"all_patch_size", {2, 4}}}),
              HasSubstr("'all_patch_size' should be [2]"));
  EXPECT_THAT(kZImage.refusal_with(transformer, {{"cap_feat_dim", 12}}),
              HasSubstr("takes embedded text of width 12, the text encoder makes 10"));
  EXPECT_THAT(kZImage.refusal_with(transformer, {{"in_channels", 8}}),
              HasSubstr("takes latents of 8 channels, the autoencoder makes 4"));
  EXPECT_THAT(kZImage.refusal_with(transformer, {{"axes_lens", {33, 512, 512}}}),
              HasSubstr("'axes_lens' should be at least 34"));
  EXPECT_THAT(kZImage.refusal_with("text_encoder/config.json", {{"model_type", "llama"}}),
              HasSubstr("'model_type' should be qwen3 or mistral"));
  EXPECT_THAT(kZImage.refusal_with("text_encoder/config.json", {{"num_hidden_layers", 0}}),
              HasSubstr("the text encoder has 0 layers: there is no hidden state -2"));
  EXPECT_THAT(kZImage.refusal_with("model_index.json", {{"_class_name", "ZImageOmniPipeline"}}),
              HasSubstr("it describes a ZImageOmniPipeline"));
}

TEST(ZImageFamily, RefusesATokenizerThatCannotSpellAChat) {
  const TemporaryFolder scratch;
  const auto model = scratch / "model";
  fs::copy(kZImage.folder, model, fs::copy_options::recursive);
  edit_json(model / "tokenizer/tokenizer.json", [](Json& json) {
    for (auto& token : json["added_tokens"])
      if (token["content"] == "<|im_start|>") token["content"] = "<|start|>";
  });
  auto options = kZImage.with();
  options.model = model;
  EXPECT_THAT(zimage_refusal(options), HasSubstr("has no token <|im_start|>"));
}

}  // namespace braid::zimage_test
