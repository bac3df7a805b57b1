// All that Braid does with a model of two denoisers, each for its noise levels.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/print/info/model_info.h"
#include "base/error.h"
#include "made_toy.h"
#include "message_of.h"
#include "named_layout.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/deployment/degrees.h"
#include "pipeline/engine/engine.h"
#include "pipeline/planner/planner.h"
#include "pipeline/planner/stage_of_rank.h"
#include "pipeline/planner/traffic_text.h"
#include "pipeline/proofs/bench.h"
#include "pipeline/proofs/verify.h"
#include "served.h"

namespace braid::toy::experts_test {

using testing::Contains;
using testing::HasSubstr;

// Its steps are at 1, 0.76 and 0.44.
const Request kRequest{.prompts = {"a blue star"}, .steps = 3, .seed = 5};
constexpr double kBoundary = 0.6;

const MadeToyExperts& made() {
  static const MadeToyExperts toy(kBoundary);
  return toy;
}

PipelineOptions options_with(const Layout& layout = {}, const Memory& memory = {},
                             const std::filesystem::path& model = made().model()) {
  return {.model = model,
          .dtype = Dtype::kFloat32,
          .threads = degrees_of(layout).product(),  // the bits of sums depend on it
          .layout = layout,
          .memory = memory};
}

Generated drawn(const PipelineOptions& options, const Request& request = kRequest) {
  return Engine(options, {}).generate(request, {}, {.record = RecordTensors::kYes});
}

Tensor latents(const PipelineOptions& options, const Request& request = kRequest) {
  return drawn(options, request).facts.recording.at("latents_final");
}

double largest_difference(const Tensor& a, const Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

// One of the denoisers, by itself.
class Alone {
 public:
  explicit Alone(const std::string& folder)
      : toy_({}, Weights(Checkpoint::open(made().model() / folder, "diffusion_pytorch_model"),
                         toy_names(), {})) {}
  Tensor operator()(const Tensor& x_BNC, const Tensor& text_BTC, float timestep) const {
    const auto axis = at::arange(8, at::kFloat);
    const auto grid = at::broadcast_tensors({axis.unsqueeze(1), axis.unsqueeze(0)});
    const DenoiserInput in{
        .noise = {.x_BLC = x_BNC, .ids_LA = at::stack(grid, -1).flatten(0, 1)},
        .text = {.x_BLC = text_BTC, .ids_LA = at::zeros({text_BTC.size(1), 2}, at::kFloat)},
        .timestep_B = at::full({1}, timestep / 1000, at::kFloat)};
    return toy_.advance(in, {});
  }

 private:
  Toy toy_;
};

// Euler's steps, written out.
TEST(ToyExperts, DrawEachStepWithTheDenoiserOfItsNoiseLevel) {
  const c10::InferenceMode no_autograd;
  const auto got = drawn(options_with()).facts.recording;
  const auto sigmas = got.at("sigmas"), timesteps = got.at("timesteps");
  ASSERT_EQ(timesteps.size(0), 3);
  ASSERT_GT(timesteps[1].item<float>(), 1000 * kBoundary);
  ASSERT_LT(timesteps[2].item<float>(), 1000 * kBoundary);
  const Alone noisy("transformer"), clean("transformer_2");
  const auto text = got.at("prompt_embeds");
  auto x = got.at("latents_initial");
  for (int i = 0; i < 3; ++i) {
    const auto velocity = (i < 2 ? noisy : clean)(x, text, timesteps[i].item<float>());
    x = x + (sigmas[i + 1] - sigmas[i]) * velocity;
  }
  EXPECT_LT(largest_difference(got.at("latents_final"), x), 1e-5);
}

TEST(ToyExperts, DrawWhatOneDenoiserDrawsWhereItServesAllSteps) {
  const MadeToy one;
  const MadeToyExperts two(0.01);
  EXPECT_EQ(drawn(options_with({}, {}, two.model())).pictures.front().rgb,
            drawn(options_with({}, {}, one.model())).pictures.front().rgb);
  EXPECT_NE(drawn(options_with()).pictures.front().rgb,
            drawn(options_with({}, {}, one.model())).pictures.front().rgb);
}

const NamedLayout kLayouts[] = {{"Tp2", {.tp = 2}},
                                {"Ring3", {.ring = 3}},
                                {"Ulysses2", {.ulysses = 2}},
                                {"LayerSplit2", {.pp = 2}},
                                {"Tp2LayerSplit2", {.tp = 2, .pp = 2}},
                                {"Cfg2", {.cfg = 2}},
                                {"Dp2", {.dp = 2}}};

class ToyExpertLayouts : public testing::TestWithParam<NamedLayout> {};
INSTANTIATE_TEST_SUITE_P(All, ToyExpertLayouts, testing::ValuesIn(kLayouts), name_of_layout);

Request request_for(const Layout& layout) {
  auto request = kRequest;
  request.num_images = layout.dp;
  if (layout.cfg == 1) return request;
  request.negative_prompt = "a green square";
  request.true_cfg = 3;
  return request;
}

TEST_P(ToyExpertLayouts, AreProvenForBoth) {
  const auto& layout = GetParam().layout;
  const auto deployment = deploy(options_with(layout));
  const auto verdict = verify(deployment);
  const auto num_places = layout.ring * layout.ulysses > 1 ? 9 : 5;
  EXPECT_EQ(verdict.blocks.size(), std::size_t(2 * num_places * layout.cfg * layout.dp));
  EXPECT_EQ(verdict.first_divergent(), nullptr);
  std::vector<std::string> places;
  for (const auto& block : verdict.blocks) places.push_back(block.where);
  EXPECT_THAT(places, Contains("velocity"));
  EXPECT_THAT(places, Contains("blocks.3 of transformer_2"));
  EXPECT_THAT(places, Contains("velocity of transformer_2"));
  if (layout.pp > 1 && layout.tp == 1) return;  // none of the faults is one of stages alone
  const auto fault = layout.pp > 1 ? Fault::kZeroTimestep : Fault::kRankNoise;
  EXPECT_NE(verify(deployment, {.fault = fault}).first_divergent(), nullptr);
}

TEST_P(ToyExpertLayouts, DrawWhatOneRankDraws) {
  const auto& layout = GetParam().layout;
  const auto request = request_for(layout);
  EXPECT_LT(
      largest_difference(latents(options_with(layout), request), latents(options_with(), request)),
      1e-5);
}

// The last rank has no text encoder.
TEST_P(ToyExpertLayouts, MoveAndReadWhatIsPredicted) {
  const auto options = options_with(GetParam().layout);
  const auto request = request_for(GetParam().layout);
  const auto facts = drawn(options, request).facts;
  const auto deployment = deploy(options);
  const auto job = job_of(deployment, request);
  const auto& degrees = deployment.degrees();
  const auto stage = [&](int rank) { return stage_of_rank(job, degrees, rank); };
  EXPECT_EQ(text_of_traffic(facts.step_traffic),
            text_of_traffic(predict_traffic(job, degrees, 0, stage(0))));
  const int last = degrees.product() - 1;
  std::int64_t denoisers = 0;
  for (const auto* const part : job.family->denoisers())
    denoisers += 4 * numbers_in(job, *part, stage(last), degrees.tp);
  const auto& decoder = job.family->part(Part::Role::kDecoder);
  const auto element =
      std::int64_t(c10::elementSize(deployment.files->open(decoder.folder).dtype()));
  EXPECT_EQ(facts.load.bytes_read.back().all,
            denoisers + element * numbers_in(job, decoder, {.is_first = true}, 1));
  EXPECT_EQ(predict_bytes(job, degrees, last, stage(last)).transformer, denoisers);
}

TEST(ToyExperts, KeepTheirBitsWhereverTheirWeightsAre) {
  const auto resident = latents(options_with());
  for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kLeaf})
    for (const int stay : {0, 5}) {
      const Memory memory{
          .offload = {.transformer = mode, .text = mode, .vae = mode, .resident = stay}};
      EXPECT_TRUE(at::equal(latents(options_with({}, memory)), resident)) << int(mode) << stay;
    }
}

// The slots of one block at a time, and the next, are those of both denoisers.
TEST(ToyExperts, ShareTheSlotsOfTheirPages) {
  const auto planned = [](const std::filesystem::path& model, const Memory& memory) {
    const auto job = job_of(deploy(options_with({}, memory, model)), kRequest);
    return predict_bytes(job, {}, 0, whole_transformer(job.shape()));
  };
  const MadeToy one;
  const Memory in_blocks{.offload = {.transformer = OffloadMode::kBlock}};
  const auto of_one = planned(one.model(), in_blocks), of_two = planned(made().model(), in_blocks);
  EXPECT_EQ(of_two.pages, 2 * of_one.pages);
  EXPECT_EQ(of_two.slots, of_one.slots);
  const Memory whole{.offload = {.transformer = OffloadMode::kModel}};
  EXPECT_EQ(planned(made().model(), whole).shared_slot, planned(one.model(), whole).shared_slot);
}

TEST(ToyExperts, TellTheStepsOfBothWithACache) {
  auto cached = options_with();
  cached.cache = {.mode = CacheMode::kFirstBlock, .threshold = 0};  // leaves nothing out
  const auto got = drawn(cached);
  EXPECT_TRUE(at::equal(got.facts.recording.at("latents_final"), latents(options_with())));
  EXPECT_EQ(got.facts.full_steps, (std::vector<std::vector<int>>{{0, 1, 2}}));
}

TEST(ToyExperts, ArePlanned) {
  const auto job = job_of(deploy(options_with()), kRequest);
  const auto devices = devices_named("", "4xh100");
  const auto layouts = plan_layouts(job, {devices, link_of(devices), link_of(devices)});
  EXPECT_TRUE(layouts.front().fits());
}

TEST(ToyExperts, AreTimedOneAfterAnother) {
  const auto timed = bench(deploy(options_with({.tp = 2})), {.runs = 2});
  ASSERT_EQ(timed.denoisers.size(), 2u);
  EXPECT_EQ(timed.denoisers[0].folder, "transformer");
  EXPECT_EQ(timed.denoisers[1].folder, "transformer_2");
  for (const auto& denoiser : timed.denoisers) EXPECT_EQ(denoiser.seconds.size(), 2u);
}

TEST(ToyExperts, AreConvertedToTheWeightsThatTheirQuantizationHas) {
  const Memory int8{.quantize = Quantize::kInt8, .quantize_text = Quantize::kInt8};
  const auto quantized = latents(options_with({}, int8));
  EXPECT_GT(largest_difference(quantized, latents(options_with())), 0);
  const TemporaryFolder folder;
  const auto out = folder.path() / "int8";
  convert({.model = made().model(), .out = out, .dtype = Dtype::kFloat32, .memory = int8});
  EXPECT_TRUE(at::equal(latents(options_with({}, {}, out)), quantized));
  ConvertOptions in_one_file{.model = made().model(), .out = folder.path() / "one.safetensors"};
  in_one_file.form = ConvertOptions::Form::kSingleFile;
  EXPECT_THAT(message_of([&] { convert(in_one_file); }), HasSubstr("has 2 transformers"));
}

// A LoRA of rank 2 for one layer, and that denoiser's file with the product added.
TEST(ToyExperts, TakeAdaptersByTheFoldersOfTheirParts) {
  at::manual_seed(3);
  const auto down = at::randn({2, 48}) / 7, up = at::randn({96, 2}) / 3;
  const std::string layer = "blocks.1.up";
  for (const std::string part : {"transformer", "transformer_2"}) {
    const TemporaryFolder folder;
    const auto lora = folder.path() / "lora.safetensors";
    write_file(lora, write_safetensors({{part + "." + layer + ".lora_A.weight", down},
                                        {part + "." + layer + ".lora_B.weight", up}}));
    const MadeToyExperts merged(kBoundary);
    auto tensors = made_tensors<Toy>(ToyConfig(), part == "transformer" ? 7 : 8);
    tensors[layer + ".weight"] = tensors[layer + ".weight"] + at::matmul(up, down);
    write_file(merged.model() / part / "diffusion_pytorch_model.safetensors",
               write_safetensors(tensors));
    const auto want = drawn(options_with({}, {}, merged.model())).facts.recording;
    for (const auto mode : {AdapterMode::kFused, AdapterMode::kUnmerged}) {
      auto adapted = options_with();
      adapted.adapters = {{.file = lora}};
      adapted.adapter_mode = mode;
      const auto got = drawn(adapted).facts.recording;
      for (const auto* const name : {"velocity_first", "latents_final"})
        EXPECT_LT(largest_difference(got.at(name), want.at(name)), 1e-5) << part << name;
    }
    EXPECT_GT(largest_difference(latents(options_with()), want.at("latents_final")), 1e-4);
  }
}

TEST(ToyExperts, AreDescribed) {
  const auto info = model_info(deploy(options_with()));
  EXPECT_EQ(info["parts"].size(), 4u);
  EXPECT_EQ(info["parts"]["transformer"]["noise_levels"]["from"], kBoundary);
  EXPECT_EQ(info["parts"]["transformer"]["noise_levels"]["to"], 1);
  EXPECT_EQ(info["parts"]["transformer_2"]["noise_levels"]["to"], kBoundary);
  EXPECT_THAT(model_summary(info), HasSubstr("noise 0.6 to 1"));
  EXPECT_FALSE(model_info(deploy({.model = MadeToy().model()}))["parts"]["transformer"].contains(
      "noise_levels"));
}

TEST(ToyExperts, AreNotGivenAsASingleFile) {
  const auto file = made().model() / "transformer_2/diffusion_pytorch_model.safetensors";
  EXPECT_THAT(message_of([&] { (void)deploy({.model = file, .components = made().model()}); }),
              HasSubstr("is one transformer, but a ToyExpertsPipeline has 2"));
}

// Guidance by the second denoiser, written out.
TEST(ToyTwins, GuideAwayFromWhatTheSecondPredicts) {
  const c10::InferenceMode no_autograd;
  const MadeToyTwins twins;
  auto guided = kRequest;
  guided.negative_prompt = guided.prompts.front();
  guided.true_cfg = 3;
  const auto options = options_with({}, {}, twins.model());
  const auto got = drawn(options, guided).facts.recording;
  const Alone prompted("transformer"), other("transformer_2");
  auto x = got.at("latents_initial");
  for (int i = 0; i < 3; ++i) {
    const auto timestep = got.at("timesteps")[i].item<float>();
    const auto positive = prompted(x, got.at("prompt_embeds"), timestep),
               negative = other(x, got.at("prompt_embeds"), timestep);
    x = x +
        (got.at("sigmas")[i + 1] - got.at("sigmas")[i]) * (negative + 3 * (positive - negative));
  }
  EXPECT_LT(largest_difference(got.at("latents_final"), x), 1e-5);
}

TEST(ToyTwins, AreSharedByRanksForBranches) {
  const MadeToyTwins twins;
  for (const auto& layout : {Layout{.cfg = 2}, Layout{.ring = 2, .cfg = 2}, Layout{.tp = 2}}) {
    const auto options = options_with(layout, {}, twins.model());
    const auto verdict = verify(deploy(options));
    EXPECT_EQ(verdict.blocks.size(), layout.ring > 1 ? 2 * 9u : 2 * 5u);
    EXPECT_EQ(verdict.first_divergent(), nullptr);
    auto guided = kRequest;
    guided.negative_prompt = "a green square";
    guided.true_cfg = 3;
    const auto one = options_with({}, {}, twins.model());
    EXPECT_LT(largest_difference(latents(options, guided), latents(one, guided)), 1e-5);
  }
}

TEST(ToyExperts, AreServed) {
  EXPECT_EQ(drawn_by(served(options_with()), kRequest).front().rgb,
            drawn(options_with()).pictures.front().rgb);
}

}  // namespace braid::toy::experts_test
