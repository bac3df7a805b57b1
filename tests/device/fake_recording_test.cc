// What a step asks of a GPU while it is recorded, told by the streams of fake_gpu.cc: nothing that
// the host waits for.
#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "comm/mesh.h"
#include "comm/thread.h"
#include "fake_gpu.h"
#include "on_gpu.h"
#include "parallel/ulysses.h"
#include "pipeline/deployment/link_speed.h"
#include "pipeline/devices/device_speed.h"
#include "pipeline/devices/devices.h"
#include "pipeline/graphs/step_graph.h"
#include "pipeline/proofs/probe.h"

namespace braid::fake_recording_test {

namespace fs = std::filesystem;
using fake_gpu::AreRecording;
using testing::HasSubstr, testing::ThrowsMessage;

at::Device gpu(int rank) { return {at::kCUDA, at::DeviceIndex(rank)}; }
c10::Stream new_stream() { return c10::impl::VirtualGuardImpl(at::kCUDA).getNewStream(gpu(0)); }

std::vector<at::Device> first_gpus(int count) {
  std::vector<at::Device> gpus;
  for (int r = 0; r < count; ++r) gpus.push_back(gpu(r));
  return gpus;
}

// The checker itself: what CUDA refuses, and what it does not.
TEST(FakeRecording, RefusesWhatTheHostWouldWaitFor) {
  const auto x = at::ones({4}, gpu(0)), y = at::ones({4}, gpu(0));
  const auto host = at::ones({4});
  const AreRecording recording;
  const auto refused = ThrowsMessage<c10::Error>(HasSubstr("stream is capturing"));
  EXPECT_THAT([&] { (void)x.cpu(); }, refused);
  EXPECT_THAT([&] { (void)host.to(gpu(0)); }, refused);
  EXPECT_THAT([&] { (void)x.sum().item<float>(); }, refused);
  EXPECT_THAT([&] { wait_for(gpu(0)); }, refused);
  EXPECT_NO_THROW((void)(x + y * 2).to(at::kHalf).clone());
  EXPECT_NO_THROW((void)at::arange(3, x.options()));
}

TEST(FakeRecording, OfOneStreamLetsOthersBeWaitedForButNotTheGpu) {
  const AreRecording recording(new_stream());
  EXPECT_NO_THROW((void)at::ones({4}, gpu(0)).cpu());
  EXPECT_NO_THROW(wait_for(gpu(0)));
  EXPECT_ANY_THROW(c10::impl::VirtualGuardImpl(at::kCUDA).synchronizeDevice(0));
}

// Heads of a rank that begin or end within a group of query heads with one key head.
TEST(RecordedUlysses, TakesUngroupedHeads) {
  constexpr int kRanks = 3;
  const auto q = at::randn({2, 6, 11, 8}), k = at::randn({2, 2, 11, 8}),
             v = at::randn({2, 2, 11, 8});
  ASSERT_FALSE(traded_heads(6, 2, 1, Shares(kRanks)).is_grouped);
  const auto want = ops::attention(q, k, v);
  ThreadWorld world({.size = kRanks, .devices = first_gpus(kRanks)});
  std::vector<std::vector<Tensor>> inputs(kRanks);
  std::vector<Tensor> results(kRanks);
  const auto attend = [&] {
    world.run([&](const Group& ranks) {
      const c10::DeviceGuard on(gpu(ranks.rank()));
      const auto& in = inputs[std::size_t(ranks.rank())];
      results[std::size_t(ranks.rank())] = ulysses(ranks, ops::attention)(in[0], in[1], in[2]);
    });
  };
  world.run([&](const Group& ranks) {
    for (const auto& x : {q, k, v})
      inputs[std::size_t(ranks.rank())].push_back(take_share(x, 2, ranks).to(gpu(ranks.rank())));
  });
  attend();
  {
    const AreRecording recording;
    attend();
  }
  std::vector<Tensor> here;
  for (const auto& result : results) here.push_back(result.cpu());
  EXPECT_LT((at::cat(here, 2) - want).abs().max().item<double>(), 2e-6);
}

struct Recorded {
  std::string name;
  fs::path model;
  Degrees degrees = {};
  Memory memory = {};
};

std::ostream& operator<<(std::ostream& out, const Recorded& recorded) {
  return out << recorded.name;
}

class RecordedSteps : public testing::TestWithParam<Recorded> {};

// A rank's denoisers and the branches of one step.
struct Ready {
  std::unique_ptr<const Denoisers> denoisers;
  std::unique_ptr<const OncePerPicture> once;
  std::vector<DenoiserInput> branches;
};

Ready ready_on(const Mesh& mesh, const Deployment& deployment, const Probe& probe) {
  Ready ready{.denoisers = denoisers_of(mesh, deployment),
              .once = nullptr,
              .branches = {inputs_of(probe, 3, gpu(mesh.world.rank()))}};
  modulate_controls(ready.branches, ready.denoisers->controls());
  const std::vector<std::vector<DenoiserInput>> evaluations = {ready.branches};
  const bool keeps = probe.family->keeps_prefix(ReferenceCache::kAuto);
  ready.once = std::make_unique<const OncePerPicture>(*ready.denoisers, evaluations,
                                                      keeps ? Prefix::kKept : Prefix::kInEveryStep);
  ready.branches = ready.once->completed(ready.branches);
  return ready;
}

// A StepGraph, too, evaluates once, which makes all that is made on first use, and then records.
TEST_P(RecordedSteps, TakeNothingFromTheHost) {
  const auto& [name, model, degrees, memory] = GetParam();
  const int ranks = degrees.product();
  auto deployment = deploy({.model = model, .dtype = Dtype::kBfloat16, .memory = memory});
  deployment.devices = first_gpus(ranks);
  const auto probe = probe_of({.width = 64, .height = 64, .max_sequence_length = 16}, deployment);
  ThreadWorld world({.size = ranks, .devices = deployment.devices});
  std::vector<Ready> all(static_cast<std::size_t>(ranks));
  const auto on_ranks = [&](const std::function<void(const Group&, Ready&)>& body) {
    world.run([&](const Group& group) {
      const c10::DeviceGuard on(gpu(group.rank()));
      body(group, all[std::size_t(group.rank())]);
    });
  };
  on_ranks([&](const Group& group, Ready& mine) {
    mine = ready_on(make_mesh(group, degrees), deployment, probe);
    (void)mine.denoisers->predict(mine.branches);
  });
  {
    const AreRecording recording;
    on_ranks([](const Group&, Ready& mine) { (void)mine.denoisers->predict(mine.branches); });
  }
  on_ranks([](const Group&, Ready& mine) { const auto ended = std::move(mine); });
}

const fs::path kFamilies = fs::path(BRAID_SOURCE_DIR) / "tests/data/parity";

std::vector<Recorded> recorded_steps() {
  const auto demo = fs::path(BRAID_SOURCE_DIR) / "models/demo";
  std::vector<Recorded> steps = {{"demo_tp", demo, {.tp = 2}},
                                 {"demo_stages", demo, {.pp = 2}},
                                 {"demo_fp8", demo, {}, {.quantize = Quantize::kFloat8}},
                                 {"krea2_ungrouped", kFamilies / "krea2/model", {.ulysses = 4}},
                                 {"qwen21_ring", kFamilies / "qwen21/model", {.ring = 2}},
                                 {"demo", demo}};
  for (const std::string family :
       {"flux3", "joy", "klein", "krea2", "qwen21", "qwen-image", "zimage-turbo"})
    steps.push_back({.name = family, .model = kFamilies / family / "model"});
  return steps;
}

std::vector<Recorded> more_recorded_steps() {
  const auto demo = fs::path(BRAID_SOURCE_DIR) / "models/demo";
  std::vector<Recorded> steps = {
      {"demo_ring", demo, {.ring = 2}},
      {"demo_int8", demo, {}, {.quantize = Quantize::kInt8}},
      {"demo_int8_dynamic", demo, {}, {.quantize = Quantize::kInt8Dynamic}}};
  for (const std::string family : {"flux3", "joy", "klein", "krea2", "qwen21", "zimage-turbo"})
    steps.push_back({family, kFamilies / family / "model", {.ulysses = 2}});
  return steps;
}

const auto kNameOf = [](const auto& info) {
  auto name = info.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
};
INSTANTIATE_TEST_SUITE_P(Models, RecordedSteps, testing::ValuesIn(recorded_steps()), kNameOf);
INSTANTIATE_TEST_SUITE_P(SlowModels, RecordedSteps, testing::ValuesIn(more_recorded_steps()),
                         kNameOf);

// What is recorded runs at once.
struct NoGraph : DeviceGraph {
  void begin() override {}
  void end() override {}
  void replay() override {}
};

DenoiserInput input() {
  return {.noise = {at::ones({1, 4, 2}, gpu(0)), at::zeros({4, 3}, gpu(0))},
          .text = {at::ones({1, 3, 2}, gpu(0)), at::zeros({3, 3}, gpu(0))},
          .timestep_B = at::zeros({1}, gpu(0))};
}

// A pipeline beside it may be in the middle of a recording of its own.
TEST(BesideARecording, OthersGetReadyToRecordAndMeasure) {
  StepGraph step({.device = gpu(0), .make = [](at::Device) { return std::make_unique<NoGraph>(); }},
                 one_by_one([](const DenoiserInput& in) { return in.noise.x_BLC.clone(); }));
  ThreadWorld world({.size = 2, .devices = first_gpus(2)});
  const AreRecording recording(new_stream());
  EXPECT_NO_THROW({
    (void)step({input()});
    (void)step({input()});
  });
  EXPECT_EQ(step.use().replays, 1);
  EXPECT_GT(measure_product(gpu(0), product_for(gpu(0), 16, at::kFloat, 1)), 0);
  world.run([](const Group& group) {
    const c10::DeviceGuard on(gpu(group.rank()));
    EXPECT_GT(measure_link(group, gpu(group.rank())).speed, 0);
  });
}

}  // namespace braid::fake_recording_test
