// The bundled model on a GPU: beside the CPU, beside itself with its weights elsewhere, and under
// layouts whose ranks share a GPU.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "on_gpu.h"
#include "pipeline/deployment/degrees.h"
#include "pipeline/engine/engine.h"
#include "pipeline/graphs/device_graph.h"
#include "pipeline/proofs/verify.h"

namespace braid::model_test {

const std::filesystem::path kModel = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo";
constexpr const char* kTensors[] = {"prompt_embeds", "pooled_prompt_embeds", "velocity_first",
                                    "latents_final"};

Generated draw(const PipelineOptions& options, int steps = 2) {
  const Engine engine(options, {}, Measure::kPeaks);
  return engine.generate({.prompts = {"a red circle on a blue background"},
                          .width = 64,
                          .height = 48,
                          .steps = steps,
                          .max_sequence_length = 13},
                         {}, {.record = RecordTensors::kYes});
}

PipelineOptions on(std::vector<std::string> devices, Dtype dtype = Dtype::kFloat32) {
  return {.model = kModel, .dtype = dtype, .devices = std::move(devices)};
}

double largest_error(const Tensor& got, const Tensor& want) {
  return ((got - want).abs().max() / want.abs().max()).item<double>();
}

// Counts in levels of 255.
double mean_difference(const Picture& a, const Picture& b) {
  const auto numbers = [](const Picture& p) { return at::tensor(p.rgb, at::kByte).to(at::kFloat); };
  return (numbers(a) - numbers(b)).abs().mean().item<double>();
}

using ModelOnGpu = OnGpu;
using SlowModelOnGpu = OnGpu;

// LibTorch convolves float32 in TF32 on a GPU unless told not to: pictures differ by a level.
TEST_F(ModelOnGpu, DrawsWhatTheCpuDraws) {
  const auto want = draw(on({"cpu"})), got = draw(on({"cuda:0"}));
  for (const auto* name : kTensors)
    EXPECT_LT(largest_error(got.facts.recording.at(name), want.facts.recording.at(name)), 1e-4)
        << name;
  EXPECT_LT(mean_difference(got.pictures.front(), want.pictures.front()), 1);
}

// Branches behind a prefix that is kept have the same shapes, and keys of their own.
TEST_F(SlowModelOnGpu, AttendsToEachBranchsPrefixInGraphs) {
  PipelineOptions options{
      .model = std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity/qwen21/model",
      .dtype = Dtype::kFloat32,
      .devices = {"cuda:0"},
      .graphs = Graphs::kOff};
  const auto drawn = [&] {
    return Engine(options, {})
        .generate({.prompts = {"a red circle", "a blue square"},
                   .negative_prompt = "blurred",
                   .width = 64,
                   .height = 64,
                   .steps = 4,
                   .guidance = 4,
                   .batch_size = 2},
                  {}, {.record = RecordTensors::kYes});
  };
  const auto want = drawn();
  options.graphs = Graphs::kAuto;
  options.cache = {.mode = CacheMode::kFirstBlock, .threshold = 0};  // leaves nothing out
  const auto got = drawn();
  EXPECT_LT(largest_error(got.facts.recording.at("latents_final"),
                          want.facts.recording.at("latents_final")),
            1e-4);
  EXPECT_EQ(got.facts.graph.replays > 0, bool(make_device_graph(gpu())));
}

TEST_F(SlowModelOnGpu, ComputesInShortTypesToo) {
  const auto want = draw(on({"cpu"}));
  for (const auto dtype : {Dtype::kBfloat16, Dtype::kFloat16}) {
    const auto got = draw(on({"cuda:0"}, dtype));
    EXPECT_LT(largest_error(got.facts.recording.at("velocity_first"),
                            want.facts.recording.at("velocity_first")),
              0.05);
  }
}

TEST_F(SlowModelOnGpu, DrawsTheSameWithItsWeightsElsewhere) {
  for (const auto form : {Quantize::kNone, Quantize::kInt8Dynamic}) {
    auto options = on({"cuda:0"}, Dtype::kBfloat16);
    options.memory = {.quantize = form, .quantize_text = form};
    const auto want = draw(options);
    for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kLeaf}) {
      options.memory.offload = {.transformer = mode, .text = mode, .vae = mode, .resident = 2};
      const auto got = draw(options);
      for (const auto* name : kTensors)
        EXPECT_TRUE(at::equal(got.facts.recording.at(name), want.facts.recording.at(name))) << name;
      EXPECT_EQ(got.pictures.front().rgb, want.pictures.front().rgb);
    }
  }
}

struct Shared {
  std::string name;
  Layout layout;
};

class RanksOnGpu : public OnGpu, public testing::WithParamInterface<Shared> {
 protected:
  // One GPU for all of them, or where there are several, all of these in turn.
  static PipelineOptions options(int gpus) {
    auto options = on({});
    options.layout = GetParam().layout;
    const auto& l = options.layout;
    for (int r = 0; r < l.tp * l.ring * l.ulysses * l.cfg * l.dp * l.pp; ++r)
      options.devices.push_back("cuda:" + std::to_string(r % gpus));
    return options;
  }
};

const ProbeOptions kProbe{.width = 112, .height = 80, .max_sequence_length = 21};
const auto kFewLayouts = testing::Values(Shared{"tp", {.tp = 2}}, Shared{"ring", {.ring = 2}});
const auto kLayouts =
    testing::Values(Shared{"tp", {.tp = 2}}, Shared{"ring", {.ring = 2}},
                    Shared{"ulysses", {.ulysses = 2}}, Shared{"layers", {.pp = 2}});
const auto kLayoutName = [](const auto& info) { return info.param.name; };

TEST_P(RanksOnGpu, AreVerified) {
  const auto verdict = verify(deploy(options(1)), {.probe = kProbe});
  EXPECT_EQ(verdict.first_divergent(), nullptr);
  for (const auto& block : verdict.blocks) EXPECT_LT(block.difference, 1e-4) << block.where;
}

INSTANTIATE_TEST_SUITE_P(Layouts, RanksOnGpu, kFewLayouts, kLayoutName);
INSTANTIATE_TEST_SUITE_P(SlowLayouts, RanksOnGpu, kLayouts, kLayoutName);

class SlowRanksOnGpu : public RanksOnGpu {};  // only where the GPU is made

TEST_P(SlowRanksOnGpu, DrawWhatOneRankDraws) {
  const auto want = draw(on({"cuda:0"})), got = draw(options(1));
  EXPECT_LT(largest_error(got.facts.recording.at("latents_final"),
                          want.facts.recording.at("latents_final")),
            1e-4);
}

TEST_P(SlowRanksOnGpu, AreVerifiedOnGpusOfTheirOwn) {
  if (num_gpus() < 2) GTEST_SKIP() << "there is one GPU";
  const auto verdict = verify(deploy(options(2)), {.probe = kProbe});
  EXPECT_EQ(verdict.first_divergent(), nullptr);
}

// What a sum over two ranks is rounded to before the bias is added, as far as a step carries it.
// With four GPUs, tensor parallel ranks are groups of their own.
TEST_F(SlowModelOnGpu, NativeSumsDrawNearlyTheSame) {
  if (num_gpus() < 2) GTEST_SKIP() << "there is one GPU";
  auto options = on({"cuda:0", "cuda:1"}, Dtype::kBfloat16);
  options.layout.tp = 2;
  if (num_gpus() >= 4) {
    options.devices = {"cuda:0", "cuda:1", "cuda:2", "cuda:3"};
    options.layout.ring = 2;
  }
  const auto want = draw(options);
  options.layout.collectives = Collectives::kNative;
  const auto got = draw(options);
  const auto error = [&](const char* name) {
    return largest_error(got.facts.recording.at(name), want.facts.recording.at(name));
  };
  EXPECT_LT(error("velocity_first"), 0.05);
  EXPECT_GT(error("velocity_first"), 0) << "as sums in rank order";
  EXPECT_LT(mean_difference(got.pictures.front(), want.pictures.front()), 1);
  EXPECT_EQ(got.facts.step_traffic, want.facts.step_traffic);
}

// An exchange that is recorded is repeated without the hosts.
TEST_F(ModelOnGpu, ReplaysOverGpusDrawWhatStepsDraw) {
  if (num_gpus() < 2) GTEST_SKIP() << "there is one GPU";
  if (!make_device_graph(gpu())) GTEST_SKIP() << "this build records no graphs";
  constexpr int kSteps = 6;
  for (const Layout& layout : {Layout{.tp = 2}, Layout{.ring = 2}, Layout{.ulysses = 2}}) {
    auto options = on({"cuda:0", "cuda:1"});
    options.layout = layout;
    const auto got = draw(options, kSteps);
    EXPECT_EQ(got.facts.graph.replays, kSteps - 1);
    options.graphs = Graphs::kOff;
    const auto want = draw(options, kSteps);
    for (const auto* name : kTensors)
      EXPECT_LT(largest_error(got.facts.recording.at(name), want.facts.recording.at(name)), 1e-4)
          << name << ", tp " << layout.tp << ", ring " << layout.ring;
  }
}

// 10 s are too few for what a GPU's libraries load and compile at first use.
TEST_F(ModelOnGpu, RanksWaitLongerForEachOther) {
  using namespace std::chrono_literals;
  EXPECT_EQ(deadline_of({}, {at::kCPU, at::kCPU}), 10s);
  EXPECT_EQ(deadline_of({}, {at::kCPU, gpu()}), 60s);
  EXPECT_EQ(deadline_of({.deadline = 2.5}, {gpu()}), 2500ms);
}

INSTANTIATE_TEST_SUITE_P(Layouts, SlowRanksOnGpu, kLayouts, kLayoutName);

}  // namespace braid::model_test
