// Samplers and noise levels in whole runs: under every layout, from pictures, with a cache, as
// files name them, and as `plan` counts them.
#include <ATen/ATen.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "edit_json.h"
#include "picture_requests.h"
#include "pictures.h"
#include "pipeline/planner/planned.h"
#include "pipeline/sampling/solver.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"

namespace braid::samplers_test {

using testing::HasSubstr;

const std::filesystem::path kModel = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo";
const std::string kFixtures = "tests/data/parity/";
const std::string kTiny = kFixtures + "basic/model";

Request request_of(Sampler sampler) {
  return {.prompts = {"a red circle on a blue background"},
          .negative_prompt = "a green square",
          .true_cfg = 2.5,
          .width = 112,
          .height = 80,
          .steps = 4,
          .sampling = {.sampler = sampler},
          .max_sequence_length = 21,
          .seed = 3,
          .num_images = 2};
}

class SamplerLayouts : public testing::TestWithParam<Layout> {};

// One with two evaluations per step, and the one that draws noise and keeps most.
TEST_P(SamplerLayouts, DrawWhatOneRankDraws) {
  for (const auto sampler : {Sampler::kHeun, Sampler::kErSde}) {
    static std::map<Sampler, Recording> one;
    if (!one.contains(sampler)) one[sampler] = recording_of(kTiny, request_of(sampler), {});
    const auto many = recording_of(kTiny, request_of(sampler), GetParam());
    EXPECT_TRUE(at::equal(one[sampler].at("latents_initial"), many.at("latents_initial")));
    // Their steps amplify rounding more than Euler's: up to 1.9e-5 on a processor without AVX2.
    const auto& want = one[sampler].at("latents_final");
    const auto error = (many.at("latents_final") - want).abs().max() / want.abs().max();
    EXPECT_LT(error.item<double>(), 5e-5);
  }
}

const auto kNameOf = [](const auto& info) {
  const auto& l = info.param;
  return l.tp > 1        ? std::string("Tp")
         : l.ring > 1    ? "Ring"
         : l.ulysses > 1 ? "Ulysses"
         : l.cfg > 1     ? "Cfg"
         : l.pp == 3     ? "LayerSplit"
         : l.pp == 2     ? "DpLayerSplit"
                         : "Dp";
};
INSTANTIATE_TEST_SUITE_P(All, SamplerLayouts,
                         testing::Values(Layout{.tp = 2}, Layout{.cfg = 2},
                                         Layout{.dp = 2, .pp = 2}),
                         kNameOf);
INSTANTIATE_TEST_SUITE_P(Slow, SamplerLayouts,
                         testing::Values(Layout{.ring = 2}, Layout{.ulysses = 2}, Layout{.dp = 2},
                                         Layout{.pp = 3}),
                         kNameOf);

// Picture k of a batch is the picture of seed + k alone: noise comes from its own generator.
TEST(Samplers, DrawEachPicturesNoiseFromItsOwnGenerator) {
  for (const auto& [name, sampler] : kSamplers) {
    if (!is_stochastic(sampler)) continue;
    auto request = request_of(sampler);
    request.num_images = 2;
    request.batch_size = 2;
    const auto both = recording_of(kTiny, request, {}).at("latents_final");
    request.num_images = 1;
    request.seed += 1;
    const auto second = recording_of(kTiny, request, {}).at("latents_final");
    EXPECT_TRUE(at::allclose(both.narrow(0, 1, 1), second, 1e-5, 1e-5)) << name;
  }
}

TEST(Samplers, RecordTheLevelsThatWereAskedFor) {
  auto request = request_of(Sampler::kEuler);
  request.num_images = 1;
  request.sampling.sigmas = {0.9, 0.5, 0.25};
  const auto run = recording_of(kTiny, request, {});
  EXPECT_TRUE(at::allclose(run.at("sigmas"), at::tensor({0.9f, 0.5f, 0.25f, 0.f})));
  EXPECT_TRUE(at::allclose(run.at("timesteps"), at::tensor({900.f, 500.f, 250.f})));
  request.sampling = {.schedule = SigmaSchedule::kModel};
  const auto own = recording_of(kTiny, request, {}).at("sigmas");
  request.sampling = {};
  EXPECT_TRUE(at::equal(own, recording_of(kTiny, request, {}).at("sigmas")));
  request.sampling = {.base_sigmas = {1, 0.75, 0.5, 0.25}};  // what the pipeline passes for 4 steps
  EXPECT_TRUE(at::equal(own, recording_of(kTiny, request, {}).at("sigmas")));
}

// A start from a picture takes the last steps of the levels: the last two of four with strength
// 0.5.
TEST(Samplers, StartFromAPictureAtTheRightLevel) {
  auto request = request_with({.init = waves(64, 48), .strength = 0.5});
  request.num_images = 1;
  request.sampling = {.sampler = Sampler::kHeun, .sigmas = {1, 0.75, 0.4, 0.1}};
  const auto four = recording_of(kTiny, request, {});
  request.pictures.strength = 1;
  request.sampling.sigmas = {0.4, 0.1};
  const auto two = recording_of(kTiny, request, {});
  EXPECT_TRUE(at::equal(four.at("latents_initial"), two.at("latents_initial")));
  EXPECT_TRUE(at::equal(four.at("latents_final"), two.at("latents_final")));
}

// What a mask keeps ends as the picture's own latents, whatever the sampler did to it on the way.
TEST(Samplers, KeepWhatAMaskKeeps) {
  auto request = request_with({.init = waves(64, 48), .strength = 1.0, .mask = half(64, 48)});
  request.num_images = 1;
  request.steps = 3;
  request.sampling.sampler = Sampler::kEuler;
  const auto euler = recording_of(kTiny, request, {}).at("latents_final");
  const auto left = [](const Tensor& tokens) { return tokens.view({3, 4, -1}).narrow(1, 0, 2); };
  for (const auto sampler : {Sampler::kHeun, Sampler::kErSde, Sampler::kResMultistep}) {
    request.sampling.sampler = sampler;
    const auto got = recording_of(kTiny, request, {}).at("latents_final");
    EXPECT_TRUE(at::allclose(left(got), left(euler), 1e-6, 1e-6));
    EXPECT_FALSE(at::allclose(got, euler, 1e-3, 1e-3));
  }
}

TEST(Samplers, CountTheCachesEvaluationsNotItsSteps) {
  auto request = request_of(Sampler::kHeun);
  request.num_images = 1;
  const Engine engine({.model = std::filesystem::path(BRAID_SOURCE_DIR) / kTiny,
                       .dtype = Dtype::kFloat32,
                       .cache = {.mode = CacheMode::kFirstBlock, .threshold = 0}},
                      {});
  const auto facts = engine.generate(request, {}, {.record = RecordTensors::kYes}).facts;
  ASSERT_EQ(facts.full_steps.size(), 1u);
  EXPECT_EQ(facts.full_steps.front(), (std::vector<int>{0, 1, 2, 3, 4, 5, 6}));
  const auto whole = recording_of(kTiny, request, {}).at("latents_final");
  EXPECT_TRUE(at::allclose(facts.recording.at("latents_final"), whole, 1e-5, 1e-5));
}

TEST(Samplers, TellOfStepsNotOfEvaluations) {
  auto request = request_of(Sampler::kHeun);
  request.num_images = 1;
  std::vector<std::int64_t> done;
  const Hooks hooks{.progress = [&](const Progress& progress) {
    if (progress.phase != Phase::kDenoise) return;
    EXPECT_EQ(progress.total, 4);
    done.push_back(progress.done);
  }};
  Engine({.model = std::filesystem::path(BRAID_SOURCE_DIR) / kTiny, .dtype = Dtype::kFloat32}, {})
      .generate(request, hooks);
  EXPECT_EQ(done, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
}

// ---- what files name

// The file with texts in its header.
std::string with_metadata(const std::string& file, const Json& texts) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  const auto data = file.substr(sizeof length + length);
  auto header = Json::parse(file.substr(sizeof length, length));
  header["__metadata__"] = texts;
  const auto text = header.dump();
  length = text.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + text + data;
}

std::filesystem::path adapter_with(const std::filesystem::path& folder, const Json& metadata) {
  const auto file = folder / "turbo.safetensors";
  const auto name = "transformer.transformer_blocks.0.attn.to_q";
  std::map<std::string, Tensor> tensors = {
      {name + std::string(".lora_A.weight"), at::zeros({2, 192})},
      {name + std::string(".lora_B.weight"), at::zeros({192, 2})}};
  write_file(file, with_metadata(write_safetensors(tensors), metadata));
  return file;
}

TEST(Samplers, AreThoseThatALorasMetadataNames) {
  const TemporaryFolder folder;
  const auto lora = adapter_with(
      folder.path(), {{"sample_sigmas", "[1, 0.6, 0.2]"}, {"sampler", "res_multistep"}});
  const Engine engine({.model = kModel, .adapters = {{lora, 1}}}, {});
  const auto settings = engine.settle({.prompts = {"a"}}, {});
  EXPECT_EQ(settings.sampling.sampler, Sampler::kResMultistep);
  EXPECT_EQ(settings.sampling.base_sigmas, (std::vector<double>{1, 0.6, 0.2}));
  EXPECT_EQ(settings.steps, 3);
  EXPECT_EQ(engine.info().steps, 3);
  EXPECT_EQ(engine.info().sampler, Sampler::kResMultistep);
  const auto other = engine.settle(
      {.prompts = {"a"}, .steps = 9, .sampling = {.schedule = SigmaSchedule::kModel}}, {});
  EXPECT_EQ(other.steps, 9);
  EXPECT_TRUE(other.sampling.base_sigmas.empty());
}

TEST(Samplers, OfARequestsOwnLorasAreBelievedToo) {
  const TemporaryFolder folder;
  const auto lora = adapter_with(
      folder.path(), {{"sigmas", "1,0.5"}, {"scheduler", "cosine"}, {"shift", "sigmoid"}});
  const Engine engine({.model = kModel, .adapter_mode = AdapterMode::kUnmerged}, {});
  Request request{.prompts = {"a"}, .adapters = {{{lora, 1}}}};
  EXPECT_EQ(engine.settle(request, {}).num_steps, 2);
  const auto complete = engine.complete(request, {});
  EXPECT_EQ(complete.sampling.sigmas, (std::vector<double>{1, 0.5}));
  EXPECT_EQ(complete.steps, 2);
  EXPECT_EQ(engine.complete(complete, {}).sampling.sigmas, complete.sampling.sigmas);
}

// Those of the adapters that a request replaces count no longer.
TEST(Samplers, OfLoadedLorasEndWhereARequestReplacesThem) {
  const TemporaryFolder folder, other;
  const auto loaded = adapter_with(
      folder.path(), {{"sample_sigmas", "[1, 0.6, 0.2]"}, {"sampler", "res_multistep"}});
  const auto own = adapter_with(other.path(), {{"num_inference_steps", "7"}});
  const Engine plain({.model = kModel}, {});
  const Engine engine(
      {.model = kModel, .adapters = {{loaded, 1}}, .adapter_mode = AdapterMode::kUnmerged}, {});
  EXPECT_EQ(engine.settle({.prompts = {"a"}}, {}).num_steps, 3);
  const auto published = plain.settle({.prompts = {"a"}}, {});
  const auto none = engine.settle({.prompts = {"a"}, .adapters = std::vector<Adapter>{}}, {});
  EXPECT_EQ(none.num_steps, published.num_steps);
  EXPECT_EQ(none.sampling.sampler, published.sampling.sampler);
  EXPECT_TRUE(none.sampling.base_sigmas.empty());
  const auto replaced = engine.complete({.prompts = {"a"}, .adapters = {{{own, 1}}}}, {});
  EXPECT_EQ(replaced.steps, 7);
  EXPECT_EQ(replaced.sampling.sampler, published.sampling.sampler);
  const auto kept = engine.complete({.prompts = {"a"}, .adapters = {{{loaded, 1}}}}, {});
  EXPECT_EQ(kept.sampling.base_sigmas, (std::vector<double>{1, 0.6, 0.2}));
}

TEST(Samplers, LeaveStatedStepsWhereARequestTurnsLevelsOff) {
  const TemporaryFolder folder;
  std::filesystem::copy(kModel, folder.path(), std::filesystem::copy_options::recursive);
  auto defaults = read_json(folder.path() / "generation_config.json");
  defaults["sigmas"] = {1.0, 0.9, 0.4};
  const auto steps_with = [&](const Sampling& sampling, const std::vector<Adapter>& adapters = {}) {
    write_file(folder.path() / "generation_config.json", defaults.dump());
    const auto d = deploy({.model = folder.path(), .adapters = adapters});
    const Request request{.prompts = {"a"}, .sampling = sampling};
    const int steps = settle(d, request, {}).steps;
    EXPECT_EQ(job_of(d, request).steps, steps);
    return steps;
  };
  const Sampling simple{.schedule = SigmaSchedule::kSimple}, shifted{.shift = 2};
  defaults["num_inference_steps"] = 9;
  EXPECT_EQ(steps_with({}), 3);
  EXPECT_EQ(steps_with(simple), 9);
  EXPECT_EQ(steps_with(shifted), 9);
  const TemporaryFolder of_list, of_schedule, of_steps;
  const Adapter list{adapter_with(of_list.path(), {{"sigmas", "1,0.5"}}), 1};
  EXPECT_EQ(steps_with(simple, {list}), 2) << "it was distilled for so many";
  const Adapter schedule{adapter_with(of_schedule.path(), {{"schedule", "simple"}}), 1};
  EXPECT_EQ(steps_with({}, {schedule}), 9) << "it turns the model's list off";
  const Adapter steps{adapter_with(of_steps.path(), {{"num_inference_steps", "7"}}), 1};
  EXPECT_EQ(steps_with({}, {steps}), 3);
  EXPECT_EQ(steps_with(simple, {steps}), 7);
  defaults.erase("num_inference_steps");
  EXPECT_EQ(steps_with(simple), 3) << "the files state no other number";
}

TEST(Samplers, SayWhichFileNamesWrongLevels) {
  const TemporaryFolder folder;
  const auto lora = adapter_with(folder.path(), {{"sample_sigmas", "[0.5, 0.7]"}});
  EXPECT_THAT(message_of([&] {
                Engine({.model = kModel, .adapters = {{lora, 1}}}, {});
              }),
              HasSubstr("turbo.safetensors: the base sigmas should fall, but 0.7 follows 0.5"));
}

TEST(Samplers, AreThoseThatAModelsFilesName) {
  const TemporaryFolder folder;
  std::filesystem::copy(kModel, folder.path(), std::filesystem::copy_options::recursive);
  edit_json(folder / "model_index.json", [](Json& index) {
    index["sample_sigmas"] = {1.0, 0.9, 0.4};
  });
  const auto name_sampler = [&](const char* name) {
    edit_json(folder / "generation_config.json",
              [&](Json& defaults) { defaults["sampler"] = name; });
  };
  name_sampler("er_sde");
  const auto settled = [&] {
    return Engine({.model = folder.path()}, {}).settle({.prompts = {"a"}}, {});
  };
  EXPECT_EQ(settled().sampling.sampler, Sampler::kErSde);
  EXPECT_EQ(settled().sampling.base_sigmas, (std::vector<double>{1, 0.9, 0.4}));
  EXPECT_EQ(settled().steps, 3);
  name_sampler("ddim");
  EXPECT_THAT(message_of(settled), HasSubstr("generation_config.json: 'sampler' should be one of"));
}

// ---- what `plan` counts

TEST(Samplers, TakeTwoEvaluationsInThePlan) {
  auto job = flux_dev();
  const auto seconds = [&] { return planned(job, "h100", {}).seconds_per_picture; };
  const auto euler = seconds();
  job.sampler = Sampler::kHeun;
  EXPECT_NEAR(seconds() / euler, (2 * 28 - 1) / 28.0, 1e-9);
  EXPECT_EQ(job.num_levels(), 28);
  job.sampler = Sampler::kDpm2;
  EXPECT_EQ(job.num_levels(), 55);
  const auto asked =
      with_request(flux_dev(), {.sampling = {.sampler = Sampler::kDpm2, .sigmas = {1, 0.5, 0.2}}});
  EXPECT_EQ(asked.evaluations(), 5);
}

// A step of these is two evaluations, in the plan as in a run.
TEST(Samplers, SendAsMuchInAStepOfThePlanAsOfARun) {
  const PipelineOptions options{.model = kModel, .dtype = Dtype::kFloat32, .layout = {.tp = 2}};
  auto request = request_of(Sampler::kHeun);
  request.num_images = 1;
  const Engine engine(options, {});
  const auto run = engine.generate(request, {}).facts.step_traffic;
  const auto plan =
      planned(job_of(engine.deployment(), request), "2xcpu", engine.deployment().degrees());
  std::map<std::string, Traffic> sent;
  for (const auto& [axis, traffic] : run) sent[axis] = traffic;
  EXPECT_GT(sent["tp"].bytes, 0);
  for (const auto& [axis, traffic] : plan.traffic)
    EXPECT_EQ(traffic, sent[axis]) << axis << ' ' << traffic.bytes << ' ' << sent[axis].bytes;
}

// A beta schedule has fewer levels than steps are asked for, and of fewer steps fewer again.
TEST(Samplers, TakeAsManyStepsInThePlanAsInARun) {
  const TemporaryFolder folder;
  const auto lora =
      adapter_with(folder.path(), {{"schedule", "beta"}, {"num_inference_steps", "900"}});
  const Engine engine({.model = kModel, .adapters = {{lora, 1}}}, {});
  const auto settings = engine.settle({.prompts = {"a"}}, {});
  ASSERT_EQ(settings.sampling.schedule, SigmaSchedule::kBeta);
  ASSERT_LT(settings.num_steps, settings.steps);
  EXPECT_EQ(job_of(engine.deployment(), {.prompts = {"a"}}).steps, settings.num_steps);
}

TEST(Samplers, SkipTheStepsInThePlanThatARunSkips) {
  const auto deployment = deploy({.model = kModel});
  Request request{.prompts = {"a"}, .steps = 10};
  const auto whole = job_of(deployment, request);
  EXPECT_EQ(whole.steps, 10);
  request.pictures.init = grey_picture(32, 32);
  for (const auto strength : {std::optional<double>(), std::optional(0.3), std::optional(1.0)}) {
    request.pictures.strength = strength;
    const auto settings = settle(deployment, request, {});
    const auto job = job_of(deployment, request);
    EXPECT_EQ(job.steps, settings.steps_taken());
    EXPECT_EQ(job.skipped_steps, settings.first_step);
    EXPECT_EQ(job.evaluations(), job.steps);
  }
  request.pictures.strength = 0.3;
  EXPECT_EQ(job_of(deployment, request).steps, 3);
}

}  // namespace braid::samplers_test
