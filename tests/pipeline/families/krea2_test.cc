// Krea 2 through the Family interface: every budget and command on a random pipeline of its shapes.
// parity_test.cc checks the numbers against diffusers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "krea2_model.h"
#include "message_of.h"
#include "models/krea2/model.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/families/krea2/krea2.h"
#include "pipeline/planner/costs/held.h"
#include "pipeline/planner/costs/memory.h"
#include "pipeline/planner/planner.h"
#include "pipeline/proofs/bench.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"
#include "weights/paging/cpu_device.h"
#include "weights/paging/order_checker.h"

namespace braid::krea2_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(Krea2Family, DrawsPromptsOfAnyLengthsAsIfTheyWereAlone) {
  auto request = guided_krea2();
  request.prompts = {"a star", "", request.prompts.front(), "猫と 🎨"};
  request.batch_size = 3;
  const auto together = drawn_krea2(krea2_with(), request);
  for (std::size_t i = 0; i < request.prompts.size(); ++i) {
    auto alone = request;
    alone.prompts = {request.prompts[i]};
    alone.seed = request.seed + i;
    const auto want = drawn_krea2(krea2_with(), alone)["latents_final"];
    EXPECT_LT(krea2_error(together["latents_final"].narrow(0, std::int64_t(i), 1), want), 1e-5)
        << "prompt " << i;
  }
}

// positive + scale * (positive - negative), on above 0; the empty prompt is the negative one.
TEST(Krea2Family, IsGuidedAboveZeroAgainstAnEmptyPrompt) {
  auto request = kKrea2Request;
  request.steps = 1;
  const auto positive = drawn_krea2(krea2_with(), request)["latents_final"];
  request.guidance = 0.5;
  auto spelled = request;
  spelled.negative_prompt = "";
  const auto got = drawn_krea2(krea2_with(), request);
  EXPECT_TRUE(at::equal(got["latents_final"], drawn_krea2(krea2_with(), spelled)["latents_final"]));
  auto empty = request;
  empty.prompts = {""};
  empty.guidance = 0;
  const auto negative = drawn_krea2(krea2_with(), empty)["latents_final"];
  EXPECT_LT(krea2_error(got["latents_final"], positive + 0.5 * (positive - negative)), 1e-5);
  EXPECT_GT(krea2_error(got["latents_final"], positive), 1e-3);
}

TEST(Krea2Family, RoundsSizesUp) {
  auto request = kKrea2Request;
  request.width = 97;
  request.height = 1;
  std::vector<std::string> warnings;
  const Hooks hooks{.warning = [&](const std::string& one) { warnings.push_back(one); }};
  const auto picture = Engine(krea2_with(), {}).generate(request, hooks).pictures.front();
  EXPECT_EQ(picture.width, 112);
  EXPECT_EQ(picture.height, 16);
  EXPECT_THAT(warnings, testing::Contains(HasSubstr("width 97 is rounded up to 112")));
}

TEST(Krea2Family, RunsEveryLayoutInBfloat16) {
  const auto exact = drawn_krea2(krea2_with(), guided_krea2());
  auto one = krea2_with();
  one.dtype = Dtype::kBfloat16;
  const auto from = drawn_krea2(one, guided_krea2());
  for (const Layout& layout : {Layout{.tp = 2, .text = TextRanks::kShared}, Layout{.tp = 8},
                               Layout{.ring = 2}, Layout{.pp = 2}, Layout{.cfg = 2}}) {
    auto options = krea2_with(layout);
    options.dtype = Dtype::kBfloat16;
    const auto got = drawn_krea2(options, guided_krea2());
    EXPECT_TRUE(at::equal(got["latents_initial"], from["latents_initial"]));
    const auto error = (got["velocity_first"] - from["velocity_first"]).norm();
    EXPECT_LT((error / from["velocity_first"].norm()).item<double>(), 0.05);
  }
  EXPECT_FALSE(at::equal(from["latents_initial"], exact["latents_initial"]));
}

TEST(Krea2Family, KeepsItsBitsWhereverItsWeightsAre) {
  const auto resident = drawn_krea2(krea2_with(), guided_krea2());
  for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kLeaf}) {
    const Memory memory{.offload = {.transformer = mode, .text = mode, .vae = mode}};
    const auto got = drawn_krea2(krea2_with({}, memory), guided_krea2());
    EXPECT_TRUE(at::equal(got["latents_final"], resident["latents_final"])) << int(mode);
  }
}

// The first block tells whether the others may be left out; the text's fusion is none of them.
TEST(Krea2Family, LeavesOutBlocksThatWouldRepeatThemselves) {
  auto options = krea2_with();
  options.cache = {.mode = CacheMode::kFirstBlock, .threshold = 1e9};
  auto request = guided_krea2();
  request.steps = 4;
  const auto cached = drawn_krea2(options, request);
  const auto plain = drawn_krea2(krea2_with(), request);
  EXPECT_TRUE(at::equal(cached["velocity_first"], plain["velocity_first"]));
  EXPECT_GT(krea2_error(cached["latents_final"], plain["latents_final"]), 1e-4);
  options.cache.threshold = 0;
  EXPECT_LT(krea2_error(drawn_krea2(options, request)["latents_final"], plain["latents_final"]),
            1e-6);
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
  const auto job = surveyed({.family = probe.family, .dtype = at::kFloat});
  for (auto how : {Paging{.level = PageLevel::kBlock}, Paging{.level = PageLevel::kLeaf}}) {
    const auto checker = std::make_shared<OrderChecker>(std::make_shared<CpuPageDevice>());
    how.pages = std::make_shared<Pages>(checker, at::kCPU, PageOptions{.prefetch = 1});
    const Krea2 model(config, Weights::synthetic({.paging = how}));
    how.pages->finish();
    const auto mode = how.level == PageLevel::kBlock ? OffloadMode::kBlock : OffloadMode::kLeaf;
    const auto planned = pages_of(job.tensors->of(Part::Role::kDenoiser), {}, {.offload = mode});
    const auto of_steps = copied_bytes(planned, {.resident = 0}, PageUse::kRepeated);
    EXPECT_GT(copied_bytes(planned, {.resident = 0}, PageUse::kOnce), 0);
    checker->enter_loop();
    for (int picture = 0; picture < 2; ++picture) {
      auto in = inputs_of(probe, 1, at::kCPU);
      in.modulations_BM = model.modulations({model.condition(in)}).front();
      in.refined_BTC = model.refine(in, {});
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

TEST(Krea2Family, PlansTheTextAndTheVectorsThatAreHeldForAllSteps) {
  const auto job = surveyed(*named_job("krea-2-raw"));
  const auto bytes = predict_bytes(job, {}, 0, whole_transformer(job.shape()));
  EXPECT_EQ(bytes.kept, 2 * 512 * 6144 * 2);
  EXPECT_EQ(bytes.modulations, std::int64_t(2) * 28 * 7 * 6144 * 2);
  EXPECT_EQ(predict_bytes(job, {.cfg = 2}, 0, whole_transformer(job.shape())).kept, 512 * 6144 * 2);
}

TEST(Krea2Family, IsConvertedToTheWeightsThatItsQuantisationHas) {
  const Memory int8{.quantize = Quantize::kInt8, .quantize_text = Quantize::kInt8};
  const auto quantised = drawn_krea2(krea2_with({}, int8));
  EXPECT_GT(krea2_error(quantised["latents_final"], drawn_krea2(krea2_with())["latents_final"]), 0);
  const TemporaryFolder scratch;
  convert(
      {.model = kKrea2Model, .out = scratch / "int8", .dtype = Dtype::kFloat32, .memory = int8});
  auto converted = krea2_with();
  converted.model = scratch / "int8";
  EXPECT_TRUE(at::equal(quantised["latents_final"], drawn_krea2(converted)["latents_final"]));
}

// Heads of keys are copied as codes, too.
TEST(Krea2Family, SharesQuantisedWeightsToTheSameCodes) {
  const Memory int8{.quantize = Quantize::kInt8};
  const auto one = drawn_krea2(krea2_with({}, int8));
  for (const int tp : {4, 8}) {
    const auto got = drawn_krea2(krea2_with({.tp = tp}, int8));
    EXPECT_LT(krea2_error(got["velocity_first"], one["velocity_first"]), 1e-5) << tp;
  }
}

TEST(Krea2Family, IsConvertedToOneFileAndBack) {
  const TemporaryFolder scratch;
  convert({.model = kKrea2Model,
           .out = scratch / "one.safetensors",
           .form = ConvertOptions::Form::kSingleFile});
  auto in_one_file = krea2_with();
  in_one_file.model = scratch / "one.safetensors";
  in_one_file.components = kKrea2Model;
  const auto want = drawn_krea2(krea2_with());
  EXPECT_TRUE(at::equal(drawn_krea2(in_one_file)["latents_final"], want["latents_final"]));
  convert({.model = in_one_file.model, .components = kKrea2Model, .out = scratch / "back"});
  auto back = krea2_with();
  back.model = scratch / "back";
  EXPECT_TRUE(at::equal(drawn_krea2(back)["latents_final"], want["latents_final"]));
}

TEST(Krea2Family, IsTimed) {
  const auto timed =
      bench(deploy(krea2_with({.tp = 2})),
            {.probe = {.width = 112, .height = 80, .max_sequence_length = 40}, .runs = 1});
  EXPECT_EQ(timed.tokens, 35 + 40);
}

// These are the published ones.
TEST(Krea2Family, IsPlannedByName) {
  const auto job = surveyed(*named_job("krea-2-raw"));
  const auto parameters = [&](Part::Role role) {
    std::int64_t sum = 0;
    for (const auto& tensor : job.tensors->of(role).tensors) sum += numbers_of(tensor, 1);
    return sum;
  };
  EXPECT_EQ(parameters(Part::Role::kDenoiser), 12'820'073'036);
  EXPECT_EQ(parameters(Part::Role::kText), std::int64_t(35) * 100'930'816);
  EXPECT_EQ(job.branches, 2);
  EXPECT_EQ(job.steps, 28);
  const auto turbo = *named_job("krea-2-turbo");
  EXPECT_EQ(turbo.branches, 1);
  EXPECT_EQ(turbo.steps, 8);
  EXPECT_EQ(turbo.image_tokens(), 4096);
}

// Computed by diffusers' scheduler: tests/data/parity has others.
TEST(Krea2Family, HasTheScheduleOfItsKind) {
  const auto sigmas = [](const char* name) {
    return named_family(name)->schedule(8, {.width = 1024, .height = 1024}, true).sigmas;
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
  auto job = *named_job("krea-2-turbo");
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

// The error for the model with other values in one of its JSON files.
std::string refusal_of_changed_krea2(const char* file, const Json& values) {
  const TemporaryFolder scratch;
  const auto model = scratch / "model";
  fs::copy(kKrea2Model, model, fs::copy_options::recursive);
  auto json = read_json(model / file);
  json.merge_patch(values);
  write_file(model / file, json.dump());
  auto options = krea2_with();
  options.model = model;
  return message_of([&] { drawn_krea2(options); });
}

TEST(Krea2Family, RefusesConfigsThatDoNotFitOrAreNotImplemented) {
  const char* const transformer = "transformer/config.json";
  const char* const index = "model_index.json";
  EXPECT_THAT(refusal_of_changed_krea2(transformer, {{"num_text_layers", 4}}),
              HasSubstr("takes 4 hidden states of the text encoder"));
  EXPECT_THAT(refusal_of_changed_krea2(transformer, {{"text_hidden_dim", 12}}),
              HasSubstr("takes embedded text of width 12, the text encoder makes 24"));
  EXPECT_THAT(refusal_of_changed_krea2(transformer, {{"in_channels", 8}}),
              HasSubstr("takes tokens of 8 channels, 2 x 2 of the autoencoder's latents have 16"));
  EXPECT_THAT(refusal_of_changed_krea2(index, {{"text_encoder_select_layers", {1, 2, 6}}}),
              HasSubstr("the text encoder has 5 layers: there is no hidden state 6"));
  EXPECT_THAT(refusal_of_changed_krea2(index, {{"patch_size", 1}}),
              HasSubstr("takes tokens of 16 channels, 1 x 1 of the autoencoder's latents have 4"));
  EXPECT_THAT(refusal_of_changed_krea2(index, {{"patch_size", 0}}), HasSubstr("'patch_size'"));
  EXPECT_THAT(refusal_of_changed_krea2("text_encoder/config.json", {{"text_config", nullptr}}),
              HasSubstr("'text_config'"));
  EXPECT_THAT(refusal_of_changed_krea2("vae/config.json", {{"attn_scales", {1.0}}}),
              HasSubstr("'attn_scales' should be empty"));
  EXPECT_THAT(refusal_of_changed_krea2(index, {{"_class_name", "Krea3Pipeline"}}),
              HasSubstr("it describes a Krea3Pipeline"));
}

TEST(Krea2Family, RefusesRequestsThatItCannotDraw) {
  auto request = kKrea2Request;
  request.true_cfg = 4;
  EXPECT_THAT(message_of([&] { drawn_krea2(krea2_with(), request); }),
              HasSubstr("no true guidance beside its own"));
  EXPECT_THAT(message_of([&] { drawn_krea2(krea2_with({.tp = 25})); }),
              HasSubstr("tp 25 leaves a rank without a head"));
}

}  // namespace braid::krea2_test
