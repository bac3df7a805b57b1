// Krea 2 through the Family interface: what it does as no other family. every_family_test.cc has
// what all do; parity_test.cc checks the numbers against diffusers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "copies.h"
#include "message_of.h"
#include "models/krea2/model.h"
#include "pipeline/families/krea2/krea2.h"
#include "pipeline/planner/costs/memory.h"
#include "pipeline/planner/named_job.h"
#include "pipeline/planner/planner.h"
#include "predicted.h"
#include "small_models.h"
#include "weights/files/safetensors_writer.h"

namespace braid::krea2_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

// positive + scale * (positive - negative), on above 0; the empty prompt is the negative one.
TEST(Krea2Family, IsGuidedAboveZeroAgainstAnEmptyPrompt) {
  auto request = kKrea2.plain;
  request.steps = 1;
  const auto positive = kKrea2.drawn(kKrea2.with(), request)["latents_final"];
  request.guidance = 0.5;
  auto spelled = request;
  spelled.negative_prompt = "";
  const auto got = kKrea2.drawn(kKrea2.with(), request);
  EXPECT_TRUE(
      at::equal(got["latents_final"], kKrea2.drawn(kKrea2.with(), spelled)["latents_final"]));
  auto empty = request;
  empty.prompts = {""};
  empty.guidance = 0;
  const auto negative = kKrea2.drawn(kKrea2.with(), empty)["latents_final"];
  EXPECT_LT(relative_error(got["latents_final"], positive + 0.5 * (positive - negative)), 1e-5);
  EXPECT_GT(relative_error(got["latents_final"], positive), 1e-3);
}

TEST(SlowKrea2Family, DrawsSeveralPicturesInABatchUnderEveryLayout) {
  auto request = kKrea2.plain;
  request.num_images = request.batch_size = 2;
  const auto one = kKrea2.drawn(kKrea2.with(), request);
  for (const Layout& layout :
       {Layout{.tp = 4, .ulysses = 2}, Layout{.ring = 3}, Layout{.ulysses = 5}, Layout{.pp = 3}})
    expect_as_drawn(kKrea2.drawn(kKrea2.with(layout), request), one, 1);
}

TEST(Krea2Family, DrawsNoiseInTheModelsNumbers) {
  auto options = kKrea2.with();
  options.dtype = Dtype::kBfloat16;
  EXPECT_FALSE(at::equal(kKrea2.drawn(options)["latents_initial"],
                         kKrea2.drawn(kKrea2.with())["latents_initial"]));
}

TEST(Krea2Family, RoundsSizesUp) {
  auto request = kKrea2.plain;
  request.width = 97;
  request.height = 1;
  std::vector<std::string> warnings;
  const Hooks hooks{.warning = [&](const std::string& one) { warnings.push_back(one); }};
  const auto picture = Engine(kKrea2.with(), {}).generate(request, hooks).pictures.front();
  EXPECT_EQ(picture.width, 112);
  EXPECT_EQ(picture.height, 16);
  EXPECT_THAT(warnings, testing::Contains(HasSubstr("width 97 is rounded up to 112")));
}

Krea2Config tiny_krea2() {
  return {.token_width = 16,
          .image = {.hidden = 24, .num_heads = 4, .num_kv_heads = 2, .mlp_hidden = 30},
          .num_layers = 3,
          .text = {.hidden = 6, .num_heads = 1, .num_kv_heads = 1, .mlp_hidden = 10},
          .num_taps = 2,
          .axes = {2, 2, 2}};
}

// The blocks come in every step, what fuses the text once per picture.
TEST(Krea2Family, CopiesWhatFusesTextOncePerPicture) {
  const auto config = tiny_krea2();
  auto vae = wan_vae_config();
  vae.latent_channels = 4;
  const Probe probe{.family = make_krea2_family({.krea = config, .vae = vae}, {}, {}),
                    .size = {.width = 32, .height = 32},
                    .text_tokens = 3,
                    .dtype = at::kFloat};
  expect_copies_once_per_picture<Krea2>(config, probe, 1);
}

TEST(Krea2Family, PlansTheTextAndTheVectorsThatAreHeldForAllSteps) {
  const auto job = surveyed(named_job("krea-2-raw"));
  const auto bytes = predict_bytes(job, {}, 0, whole_transformer(job.shape()));
  EXPECT_EQ(bytes.kept, 2 * 512 * 6144 * 2);
  EXPECT_EQ(bytes.modulations, std::int64_t(2) * 28 * 7 * 6144 * 2);
  EXPECT_EQ(predict_bytes(job, {.cfg = 2}, 0, whole_transformer(job.shape())).kept, 512 * 6144 * 2);
}

// These are the published ones.
TEST(Krea2Family, IsPlannedByName) {
  const auto job = surveyed(named_job("krea-2-raw"));
  EXPECT_EQ(numbers_of_part(job, Part::Role::kDenoiser), 12'820'073'036);
  EXPECT_EQ(numbers_of_part(job, Part::Role::kText), std::int64_t(35) * 100'930'816);
  EXPECT_EQ(job.branches, 2);
  EXPECT_EQ(job.steps, 28);
  const auto turbo = named_job("krea-2-turbo");
  EXPECT_EQ(turbo.branches, 1);
  EXPECT_EQ(turbo.steps, 8);
  EXPECT_EQ(turbo.image_tokens(), 4096);
}

// Computed by diffusers' scheduler: tests/data/parity has others.
TEST(Krea2Family, HasTheScheduleOfItsKind) {
  const auto sigmas = [](const char* name) {
    return named_family(name)
        ->schedule(8, {.width = 1024, .height = 1024}, StartsFrom::kNoise)
        .sigmas;
  };
  const std::vector<float> raw = {1,       .94543F, .88131F, .80488F, .71223F,
                                  .59759F, .45206F, .26122F, 0},
                           turbo = {1,       .95672F, .90453F, .84035F, .75951F,
                                    .65457F, .51284F, .3109F,  0};
  EXPECT_THAT(sigmas("krea-2-raw"), testing::Pointwise(testing::FloatNear(6e-6F), raw));
  EXPECT_THAT(sigmas("krea-2-turbo"), testing::Pointwise(testing::FloatNear(6e-6F), turbo));
}

TEST(Krea2Family, PlansWhatItsHeadsForbid) {
  const auto devices = devices_named("", "8xh100");
  const auto machine = Machine{devices, link_of(devices), link_of(devices)};
  auto job = named_job("krea-2-turbo");
  bool has_tp8 = false;
  for (const auto& layout : plan_layouts(job, machine))
    has_tp8 |= layout.grid.tp == 8 && layout.fits();
  EXPECT_TRUE(has_tp8);
  const auto many = devices_named("", "49xh100");
  std::vector<std::string> reasons;
  for (const auto& layout : plan_layouts(job, {many, link_of(many), link_of(many)}))
    reasons.push_back(layout.reason);
  EXPECT_THAT(reasons, testing::Contains(HasSubstr("leaves a rank without a head")));
}

TEST(Krea2Family, RefusesConfigsThatDoNotFitOrAreNotImplemented) {
  const char* const transformer = "transformer/config.json";
  const char* const index = "model_index.json";
  EXPECT_THAT(kKrea2.refusal_with(transformer, {{"num_text_layers", 4}}),
              HasSubstr("takes 4 hidden states of the text encoder"));
  EXPECT_THAT(kKrea2.refusal_with(transformer, {{"text_hidden_dim", 12}}),
              HasSubstr("takes embedded text of width 12, the text encoder makes 24"));
  EXPECT_THAT(kKrea2.refusal_with(transformer, {{"in_channels", 8}}),
              HasSubstr("takes tokens of 8 channels, 2 x 2 of the autoencoder's latents have 16"));
  EXPECT_THAT(kKrea2.refusal_with(index, {{"text_encoder_select_layers", {1, 2, 6}}}),
              HasSubstr("the text encoder has 5 layers: there is no hidden state 6"));
  EXPECT_THAT(kKrea2.refusal_with(index, {{"patch_size", 1}}),
              HasSubstr("takes tokens of 16 channels, 1 x 1 of the autoencoder's latents have 4"));
  EXPECT_THAT(kKrea2.refusal_with(index, {{"patch_size", 0}}), HasSubstr("'patch_size'"));
  EXPECT_THAT(kKrea2.refusal_with("text_encoder/config.json", {{"text_config", nullptr}}),
              HasSubstr("'text_config'"));
  EXPECT_THAT(kKrea2.refusal_with("vae/config.json", {{"attn_scales", {1.0}}}),
              HasSubstr("'attn_scales' should be empty"));
  EXPECT_THAT(kKrea2.refusal_with(index, {{"_class_name", "Krea3Pipeline"}}),
              HasSubstr("it describes a Krea3Pipeline"));
}

// The reference draws them, too: only the end of the chat is read then.
TEST(Krea2Family, WarnsOfLengthsThatLeaveNoPrompt) {
  auto request = kKrea2.plain;
  const Engine engine(kKrea2.with(), {});
  const auto warnings_at = [&](int length) {
    std::vector<std::string> warnings;
    request.max_sequence_length = length;
    (void)engine.generate(request,
                          {.warning = [&](const std::string& one) { warnings.push_back(one); }});
    return warnings;
  };
  for (const int length : {1, 5})
    EXPECT_THAT(warnings_at(length),
                testing::Contains("`max_sequence_length` should be at least 6 for the text encoder "
                                  "to read any tokens of the prompt, it is " +
                                  std::to_string(length) + ": the prompt is ignored"));
  EXPECT_THAT(warnings_at(6), testing::Contains(HasSubstr("longer than the 1 tokens")));
}

TEST(Krea2Family, RefusesRequestsThatItCannotDraw) {
  auto request = kKrea2.plain;
  request.true_cfg = 4;
  EXPECT_THAT(message_of([&] { kKrea2.drawn(kKrea2.with(), request); }),
              HasSubstr("no true guidance beside its own"));
  EXPECT_THAT(message_of([&] { kKrea2.drawn(kKrea2.with({.tp = 25})); }),
              HasSubstr("tp 25 leaves a rank without a head"));
}

}  // namespace braid::krea2_test
