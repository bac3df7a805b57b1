// An evaluation that a GPU recorded and repeats, beside the same made kernel by kernel.
#include <ATen/ATen.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>

#include <map>
#include <optional>
#include <thread>

#include "base/error.h"
#include "on_gpu.h"
#include "pipeline/graphs/step_graph.h"

namespace braid::graph_test {

// What is recorded is done at once, and never again.
struct NoGraph : DeviceGraph {
  void begin() override {}
  void end() override {}
  void replay() override {}
};

// The streams that were current when a recording began, and when it was given up.
struct Recorded {
  std::optional<c10::StreamId> began, ended;
};

// What cannot be recorded.
class RefusedGraph : public DeviceGraph {
 public:
  RefusedGraph(at::Device device, Recorded& seen) : device_(device), seen_(seen) {}
  ~RefusedGraph() override { seen_.ended = current(); }
  void begin() override { seen_.began = current(); }
  void end() override { throw Error("not permitted"); }
  void replay() override {}

 private:
  c10::StreamId current() const {
    return c10::impl::VirtualGuardImpl(device_.type()).getStream(device_).id();
  }

  at::Device device_;
  Recorded& seen_;
};

class GraphOnGpu : public OnGpu {
 protected:
  static Tensor draw(at::IntArrayRef shape) { return at::rand(shape).to(gpu()); }
  static DenoiserInput input(double timestep, std::int64_t tokens = 64) {
    return {.noise = {draw({1, tokens, 32}), draw({tokens, 3})},
            .text = {draw({1, 8, 32}), draw({8, 3})},
            .pooled_BC = draw({1, 16}),
            .timestep_B = at::full({1}, timestep).to(gpu())};
  }
  // Matrix products, whose workspaces LibTorch keeps, and memory that is freed on the way.
  static Tensor predict(const DenoiserInput& in) {
    auto x = in.noise.x_BLC;
    for (int i = 0; i < 4; ++i) x = at::gelu(x.matmul(x.transpose(1, 2)).softmax(-1).matmul(x));
    return x * in.timestep_B + in.text.x_BLC.mean();
  }
  static std::int64_t allocated() {
    constexpr auto kAll = std::size_t(c10::CachingAllocator::StatType::AGGREGATE);
    return c10::getDeviceAllocator(at::kCUDA)->getDeviceStats(0).allocated_bytes[kAll].current;
  }
};

TEST_F(GraphOnGpu, IsMissingWithAReasonOnly) {
  EXPECT_EQ(why_no_device_graph(gpu()),
            make_device_graph(gpu()) ? "" : "this build records no graphs");
  EXPECT_EQ(why_no_device_graph(at::kCPU), "this build records no graphs");
}

TEST_F(GraphOnGpu, RepeatsWhatIsEvaluated) {
  if (!make_device_graph(gpu())) GTEST_SKIP() << "this build records no graphs";
  StepGraph step({.device = gpu()}, one_by_one(predict));
  std::vector<DenoiserInput> inputs;
  std::vector<Tensor> results;
  for (int i = 0; i < 8; ++i) {
    inputs.push_back(input(0.1 * i, i < 5 ? 64 : 96));
    results.push_back(step({inputs.back()}).front());
  }
  EXPECT_EQ(step.use().failure, "");
  EXPECT_EQ(step.use().replays, 6);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto want = predict(inputs[i]);
    EXPECT_LE((results[i] - want).abs().max().item<double>(), 1e-5) << i;
  }
}

// What is asked of the host while a GPU records cannot be recorded.
TEST_F(GraphOnGpu, GoesOnAfterARecordingThatFailed) {
  if (!make_device_graph(gpu())) GTEST_SKIP() << "this build records no graphs";
  const auto before = allocated();
  {
    StepGraph step({.device = gpu(), .on_failure = StepGraphOptions::OnFailure::kGoOn},
                   one_by_one([](const DenoiserInput& in) {
                     return predict(in) * in.timestep_B.item<double>();
                   }));
    for (int i = 0; i < 4; ++i) {
      const auto in = input(0.5);
      EXPECT_TRUE(at::allclose(step({in}).front(), predict(in) * 0.5)) << i;
    }
    EXPECT_NE(step.use().failure, "");
    EXPECT_EQ(step.use().replays, 0);
  }
  EXPECT_LE(allocated(), before + (64 << 20)) << "what was recorded is still held";
  StepGraph next({.device = gpu()}, one_by_one(predict));
  for (int i = 0; i < 3; ++i) (void)next({input(0.5)});
  EXPECT_EQ(next.use().replays, 2) << "a recording after it";
}

// A server's models share a GPU. One that waited for the whole GPU would spoil what the other
// records.
TEST_F(GraphOnGpu, IsRecordedBesideAnotherPipeline) {
  if (!make_device_graph(gpu())) GTEST_SKIP() << "this build records no graphs";
  constexpr int kPipelines = 2, kShapes = 20;
  std::vector<std::string> failures(kPipelines);
  {
    std::vector<std::jthread> pipelines;
    for (auto& failure : failures)
      pipelines.emplace_back([&failure] {
        StepGraph step({.device = gpu(), .on_failure = StepGraphOptions::OnFailure::kGoOn},
                       one_by_one(predict));
        for (int i = 0; i < 3 * kShapes; ++i) {
          const auto in = input(0.5, 32 + i / 3);
          const auto error = (step({in}).front() - predict(in)).abs().max().item<double>();
          if (error > 1e-5) failure = text_of("evaluation ", i, " differs by ", error);
        }
        if (!step.use().failure.empty()) failure = step.use().failure;
      });
  }
  EXPECT_THAT(failures, testing::Each(""));
}

// LibTorch ends a recording there only.
TEST_F(GraphOnGpu, IsGivenUpOnTheStreamThatItRecords) {
  for (const bool is_stopped : {false, true}) {
    Recorded seen;
    StepGraph step(
        {.device = gpu(),
         .on_failure = StepGraphOptions::OnFailure::kGoOn,
         .make = [&](at::Device device) { return std::make_unique<RefusedGraph>(device, seen); }},
        one_by_one([&](const DenoiserInput& in) {
          if (seen.began && is_stopped) throw Cancelled("stopped as asked");
          return in.noise.x_BLC.clone();
        }));
    (void)step({input(0.5)});
    try {
      (void)step({input(0.5)});
    } catch (const Cancelled&) {
      EXPECT_TRUE(is_stopped);
    }
    EXPECT_TRUE(seen.began);
    EXPECT_EQ(seen.ended, seen.began) << "stopped: " << is_stopped;
  }
}

// A thread's first product creates a handle of cuBLAS, which cannot be recorded; what is recorded
// any thread replays. Several ranks stay in step instead.
TEST_F(GraphOnGpu, IsRecordedOnAThreadThatHasEvaluated) {
  using OnFailure = StepGraphOptions::OnFailure;
  for (const auto& [on_failure, expected] :
       {std::pair(OnFailure::kGoOn, 3), std::pair(OnFailure::kThrow, 2)}) {
    int evaluations = 0;
    StepGraph step({.device = gpu(),
                    .on_failure = on_failure,
                    .make = [](at::Device) { return std::make_unique<NoGraph>(); }},
                   one_by_one([&](const DenoiserInput& in) {
                     ++evaluations;
                     return in.noise.x_BLC.clone();
                   }));
    (void)step({input(0.5)});
    std::jthread([&] {
      for (int i = 0; i < 2; ++i) (void)step({input(0.5)});
    }).join();
    (void)step({input(0.5)});
    EXPECT_EQ(evaluations, expected);
    EXPECT_EQ(step.use().replays, 5 - expected);
  }
}

TEST_F(GraphOnGpu, RecordsOnOneStreamWhichIsNotTheDefaultOne) {
  const c10::impl::VirtualGuardImpl guard(at::kCUDA);
  std::map<c10::StreamId, int> evaluations;
  StepGraph step({.device = gpu(), .make = [](at::Device) { return std::make_unique<NoGraph>(); }},
                 one_by_one([&](const DenoiserInput& in) {
                   ++evaluations[guard.getStream(gpu()).id()];
                   return in.noise.x_BLC.clone();
                 }));
  for (const int tokens : {4, 4, 6, 6, 4, 4}) (void)step({input(0.5, tokens)});
  EXPECT_EQ(evaluations.size(), 2u);
  EXPECT_EQ(evaluations[guard.getDefaultStream(gpu()).id()], 3);
}

}  // namespace braid::graph_test
