// Z-Image through the Family interface: every budget and command on a random pipeline of its
// shapes. parity_test.cc checks the numbers against diffusers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "models/zimage/model.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/families/zimage/zimage.h"
#include "pipeline/planner/costs/held.h"
#include "pipeline/planner/costs/memory.h"
#include "pipeline/planner/planner.h"
#include "pipeline/proofs/bench.h"
#include "weights/paging/cpu_device.h"
#include "weights/paging/order_checker.h"
#include "zimage_model.h"

namespace braid::zimage_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(ZImageFamily, DrawsPromptsOfAnyLengthsAsIfTheyWereAlone) {
  auto request = guided_zimage();
  request.prompts = {"a star", "", request.prompts.front(), "猫と 🎨"};
  request.num_images = 2;
  request.batch_size = 3;
  const auto together = drawn_zimage(zimage_with(), request);
  const auto apart = drawn_zimage(zimage_with({.dp = 2}), request);
  EXPECT_LT(zimage_error(apart["latents_final"], together["latents_final"]), 3e-5);
  for (std::size_t i = 0; i < request.prompts.size(); ++i) {
    auto alone = request;
    alone.prompts = {request.prompts[i]};
    alone.seed = request.seed + 2 * i;
    const auto want = drawn_zimage(zimage_with(), alone)["latents_final"];
    const auto got = together["latents_final"].narrow(0, 2 * std::int64_t(i), 2);
    EXPECT_LT(zimage_error(got, want), 1e-5) << "prompt " << i;
  }
}

TEST(ZImageFamily, IsGuidedAboveZeroAgainstAnEmptyPrompt) {
  auto request = kZImageRequest;
  request.guidance = 0.5;
  auto spelled = request;
  spelled.negative_prompt = "";
  const auto got = drawn_zimage(zimage_with(), request);
  EXPECT_TRUE(
      at::equal(got["latents_final"], drawn_zimage(zimage_with(), spelled)["latents_final"]));
  EXPECT_GT(zimage_error(got["latents_final"], drawn_zimage(zimage_with())["latents_final"]), 1e-4);
}

TEST(ZImageFamily, RunsEveryLayoutInBfloat16) {
  const auto exact = drawn_zimage(zimage_with(), guided_zimage());
  for (const Layout& layout : {Layout{}, Layout{.tp = 2, .text = TextRanks::kShared},
                               Layout{.ring = 2}, Layout{.pp = 2}, Layout{.cfg = 2}}) {
    auto options = zimage_with(layout);
    options.dtype = Dtype::kBfloat16;
    const auto got = drawn_zimage(options, guided_zimage());
    EXPECT_TRUE(at::equal(got["latents_initial"], exact["latents_initial"]));  // float32 noise
    const auto error = (got["velocity_first"] - exact["velocity_first"]).norm();
    EXPECT_LT((error / exact["velocity_first"].norm()).item<double>(), 0.04);
  }
}

TEST(ZImageFamily, KeepsItsBitsWhereverItsWeightsAre) {
  const auto resident = drawn_zimage(zimage_with(), guided_zimage());
  for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kLeaf}) {
    const Memory memory{.offload = {.transformer = mode, .text = mode, .vae = mode}};
    const auto got = drawn_zimage(zimage_with({}, memory), guided_zimage());
    EXPECT_TRUE(at::equal(got["latents_final"], resident["latents_final"])) << int(mode);
  }
}

// All groups but the refiners of text come in every step, each alone in its turn.
TEST(ZImageFamily, CopiesWhatRefinesTextOncePerPicture) {
  const Paging blocks{.level = PageLevel::kBlock}, leaves{.level = PageLevel::kLeaf};
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
  const auto job = surveyed({.family = probe.family, .dtype = at::kFloat});
  for (auto how : {blocks, leaves}) {
    const auto checker = std::make_shared<OrderChecker>(std::make_shared<CpuPageDevice>());
    how.pages = std::make_shared<Pages>(checker, at::kCPU, PageOptions{.prefetch = 1});
    const ZImage model(config, Weights::synthetic({.paging = how}));
    how.pages->finish();
    const auto mode = how.level == PageLevel::kBlock ? OffloadMode::kBlock : OffloadMode::kLeaf;
    const auto planned = pages_of(job.tensors->of(Part::Role::kDenoiser), {}, {.offload = mode});
    const auto of_steps = copied_bytes(planned, {.resident = 0}, PageUse::kRepeated);
    checker->enter_loop();
    for (int picture = 0; picture < 2; ++picture) {
      auto in = inputs_of(probe, 1, at::kCPU);
      in.modulations_BM = model.modulations({model.condition(in)}).front();
      in.refined_BTC = model.refine(in, {});
      for (int i = 0; i < 2; ++i) (void)model.advance(in, {});
      const auto before = how.pages->bytes_copied();
      for (int i = 0; i < 3; ++i) (void)model.advance(in, {});
      EXPECT_EQ(how.pages->bytes_copied() - before, 3 * of_steps) << picture;
    }
    checker->leave_loop();
    EXPECT_THAT(checker->hazards(), testing::IsEmpty());
  }
}

TEST(ZImageFamily, PlansTheTextThatIsHeldForAllSteps) {
  auto job = surveyed(*named_job("z-image"));
  const auto bytes = predict_bytes(job, {}, 0, whole_transformer(job.shape()));
  EXPECT_EQ(bytes.kept, 2 * 512 * 3840 * 2);
  const auto columns = 4 * 3840 * 32 + 3840;  // of two refiners, 30 layers and the last
  EXPECT_EQ(bytes.modulations, std::int64_t(2) * 50 * columns * 2);
  EXPECT_EQ(predict_bytes(job, {.cfg = 2}, 0, whole_transformer(job.shape())).kept, 512 * 3840 * 2);
}

// A folder removed after the test.
class ZImageScratch {
 public:
  ZImageScratch() {
    auto name = (fs::temp_directory_path() / "braid_zimage_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~ZImageScratch() { fs::remove_all(folder_); }
  ZImageScratch(const ZImageScratch&) = delete;
  ZImageScratch& operator=(const ZImageScratch&) = delete;

  fs::path operator/(const char* name) const { return folder_ / name; }

 private:
  fs::path folder_;
};

TEST(ZImageFamily, IsConvertedToTheWeightsThatItsQuantisationHas) {
  const Memory int8{.quantize = Quantize::kInt8, .quantize_text = Quantize::kInt8};
  const auto quantised = drawn_zimage(zimage_with({}, int8));
  EXPECT_GT(zimage_error(quantised["latents_final"], drawn_zimage(zimage_with())["latents_final"]),
            0);
  const ZImageScratch scratch;
  convert(
      {.model = kZImageModel, .out = scratch / "int8", .dtype = Dtype::kFloat32, .memory = int8});
  auto converted = zimage_with();
  converted.model = scratch / "int8";
  EXPECT_TRUE(at::equal(quantised["latents_final"], drawn_zimage(converted)["latents_final"]));
}

TEST(ZImageFamily, IsConvertedToOneFileAndBack) {
  const ZImageScratch scratch;
  convert({.model = kZImageModel,
           .out = scratch / "one.safetensors",
           .form = ConvertOptions::Form::kSingleFile});
  auto in_one_file = zimage_with();
  in_one_file.model = scratch / "one.safetensors";
  in_one_file.components = kZImageModel;
  const auto want = drawn_zimage(zimage_with());
  EXPECT_TRUE(at::equal(drawn_zimage(in_one_file)["latents_final"], want["latents_final"]));
  convert({.model = in_one_file.model, .components = kZImageModel, .out = scratch / "back"});
  auto back = zimage_with();
  back.model = scratch / "back";
  EXPECT_TRUE(at::equal(drawn_zimage(back)["latents_final"], want["latents_final"]));
}

TEST(ZImageFamily, IsTimed) {
  const auto timed =
      bench(deploy(zimage_with({.tp = 2})),
            {.probe = {.width = 112, .height = 80, .max_sequence_length = 40}, .runs = 1});
  EXPECT_EQ(timed.tokens, 64 + 64);
}

// Z-Image as published.
TEST(ZImageFamily, IsPlannedByName) {
  const auto job = surveyed(*named_job("z-image"));
  const auto parameters = [&](Part::Role role) {
    std::int64_t sum = 0;
    for (const auto& tensor : job.tensors->of(role).tensors) sum += numbers_of(tensor, 1);
    return sum;
  };
  EXPECT_EQ(parameters(Part::Role::kDenoiser), 6'154'908'736);
  EXPECT_EQ(parameters(Part::Role::kText),
            std::int64_t(35) * 100'930'816);  // without the token table
  EXPECT_EQ(job.branches, 2);
  EXPECT_EQ(job.steps, 50);
  const auto turbo = *named_job("z-image-turbo");
  EXPECT_EQ(turbo.branches, 1);
  EXPECT_EQ(turbo.steps, 8);
  EXPECT_EQ(turbo.image_tokens(), 4096);
}

TEST(ZImageFamily, PlansWhatItsHeadsForbid) {
  const auto devices = devices_named("", "32xh100");
  const auto layouts =
      plan_layouts(*named_job("z-image-turbo"), {devices, link_of(devices), link_of(devices)});
  std::vector<std::string> reasons;
  for (const auto& layout : layouts) reasons.push_back(layout.reason);
  EXPECT_TRUE(layouts.front().fits());
  EXPECT_THAT(reasons,
              testing::Contains("tp 32 leaves a rank without a head: the transformer has 30"));
}

std::string zimage_refusal(const PipelineOptions& options,
                           const Request& request = kZImageRequest) {
  try {
    drawn_zimage(options, request);
  } catch (const InputError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(ZImageFamily, RefusesRequestsThatItsTablesOrPartsForbid) {
  auto request = kZImageRequest;
  request.width = 8208;  // 513 tokens
  EXPECT_THAT(zimage_refusal(zimage_with(), request), HasSubstr("between 16 and 8192"));
  request = kZImageRequest;
  request.prompts_2 = {"a star"};
  EXPECT_THAT(zimage_refusal(zimage_with(), request), HasSubstr("one text encoder"));
  request = kZImageRequest;
  request.true_cfg = 4;
  EXPECT_THAT(zimage_refusal(zimage_with(), request), HasSubstr("no true guidance beside its own"));
  EXPECT_THAT(zimage_refusal(zimage_with({.tp = 7})),
              HasSubstr("tp 7 leaves a rank without a head"));
}

// The error for the model with other values in one of its JSON files.
std::string refusal_of_changed_zimage(const char* file, const Json& values) {
  const ZImageScratch scratch;
  const auto model = scratch / "model";
  fs::copy(kZImageModel, model, fs::copy_options::recursive);
  auto json = read_json(model / file);
  json.merge_patch(values);
  write_file(model / file, json.dump());
  auto options = zimage_with();
  options.model = model;
  return zimage_refusal(options);
}

TEST(ZImageFamily, RefusesConfigsThatDoNotFitOrAreNotImplemented) {
  const char* transformer = "transformer/config.json";
  EXPECT_THAT(refusal_of_changed_zimage(transformer, {{"siglip_feat_dim", 1152}}),
              HasSubstr("'siglip_feat_dim' should be null"));
  EXPECT_THAT(refusal_of_changed_zimage(transformer, {{"all_patch_size", {2, 4}}}),
              HasSubstr("'all_patch_size' should be [2]"));
  EXPECT_THAT(refusal_of_changed_zimage(transformer, {{"cap_feat_dim", 12}}),
              HasSubstr("takes embedded text of width 12, the text encoder makes 10"));
  EXPECT_THAT(refusal_of_changed_zimage(transformer, {{"in_channels", 8}}),
              HasSubstr("takes latents of 8 channels, the autoencoder makes 4"));
  EXPECT_THAT(refusal_of_changed_zimage(transformer, {{"axes_lens", {33, 512, 512}}}),
              HasSubstr("'axes_lens' should be at least 34"));
  EXPECT_THAT(refusal_of_changed_zimage("text_encoder/config.json", {{"model_type", "llama"}}),
              HasSubstr("'model_type' should be qwen3 or mistral"));
  EXPECT_THAT(refusal_of_changed_zimage("text_encoder/config.json", {{"num_hidden_layers", 0}}),
              HasSubstr("the text encoder has 0 layers: there is no hidden state -2"));
  EXPECT_THAT(
      refusal_of_changed_zimage("model_index.json", {{"_class_name", "ZImageOmniPipeline"}}),
      HasSubstr("it describes a ZImageOmniPipeline"));
}

TEST(ZImageFamily, RefusesATokenizerThatCannotSpellAChat) {
  const ZImageScratch scratch;
  const auto model = scratch / "model";
  fs::copy(kZImageModel, model, fs::copy_options::recursive);
  auto json = read_json(model / "tokenizer/tokenizer.json");
  for (auto& token : json["added_tokens"])
    if (token["content"] == "<|im_start|>") token["content"] = "<|start|>";
  write_file(model / "tokenizer/tokenizer.json", json.dump());
  auto options = zimage_with();
  options.model = model;
  EXPECT_THAT(zimage_refusal(options), HasSubstr("has no token <|im_start|>"));
}

}  // namespace braid::zimage_test
