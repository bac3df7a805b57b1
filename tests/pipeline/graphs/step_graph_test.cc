// Recording and replaying, with a graph simulated on the host: a device reruns its kernels on the
// same memory; this one calls the recorded functions again.
#include "pipeline/graphs/step_graph.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "pipeline/graphs/graph_pool.h"
#include "pipeline/graphs/recording_turn.h"
#include "wait_until.h"

namespace braid::step_graph_test {

// Records the work between begin() and end(); replay() repeats it.
struct Tape {
  std::vector<std::function<void()>> work;
  bool is_recording = false;
  int begins = 0, ends = 0, graphs = 0;                            // graphs: those alive
  std::string refusal;                                             // thrown by end()
  c10::weak_intrusive_ptr<c10::TensorImpl> written = weak_of({});  // output of the recorded work
  bool outlived = false;                                           // by what was recorded

  static c10::weak_intrusive_ptr<c10::TensorImpl> weak_of(const Tensor& x) {
    return c10::weak_intrusive_ptr<c10::TensorImpl>(x.getIntrusivePtr());
  }
};

class TapedGraph : public DeviceGraph {
 public:
  explicit TapedGraph(Tape& tape) : tape_(tape) { ++tape_.graphs; }
  ~TapedGraph() override {
    --tape_.graphs;
    tape_.is_recording = false;  // ends an unfinished recording
    tape_.work.clear();
    tape_.outlived = !tape_.written.expired();
  }
  void begin() override {
    tape_.work.clear();
    tape_.is_recording = true;
    ++tape_.begins;
  }
  void end() override {
    tape_.is_recording = false;
    ++tape_.ends;
    if (!tape_.refusal.empty()) throw std::runtime_error(tape_.refusal);
  }
  void replay() override {
    for (const auto& work : tape_.work) work();
  }

 private:
  Tape& tape_;
};

class StepGraphTest : public testing::Test {
 protected:
  // velocity = image * timestep + mean(text), into memory of its own.
  Tensor predict(const DenoiserInput& in) {
    ++evaluations_;
    if (is_stopped_) throw Cancelled("stopped as asked");
    const auto velocity = at::empty_like(in.noise.x_BLC);
    const auto work = [=] {
      velocity.copy_(in.noise.x_BLC * in.timestep_B.view({-1, 1, 1}) + in.text.x_BLC.mean());
    };
    if (tape_.is_recording) tape_.work.push_back(work);
    if (tape_.is_recording) tape_.written = Tape::weak_of(velocity);
    if (!tape_.is_recording) work();
    return velocity;
  }
  StepGraph graph(StepGraphOptions options = {.device = at::kCPU}) {
    options.make = [this](at::Device) { return std::make_unique<TapedGraph>(tape_); };
    return {options, one_by_one([this](const DenoiserInput& in) { return predict(in); })};
  }
  static DenoiserInput input(double timestep, std::int64_t tokens = 4) {
    return {.noise = {at::randn({1, tokens, 2}), at::zeros({tokens, 3})},
            .text = {at::randn({1, 3, 2}), at::zeros({3, 3})},
            .pooled_BC = at::zeros({1, 2}),
            .timestep_B = at::full({1}, timestep)};
  }
  Tensor expected(const DenoiserInput& in) {
    return in.noise.x_BLC * in.timestep_B + in.text.x_BLC.mean();
  }

  Tape tape_;
  int evaluations_ = 0;
  bool is_stopped_ = false;
};

TEST_F(StepGraphTest, ReplaysReadTheNewInputsAndEarlierResultsStay) {
  auto step = graph();
  std::vector<DenoiserInput> inputs;
  std::vector<Tensor> results;
  for (int i = 0; i < 5; ++i) {
    inputs.push_back(input(0.2 * i));
    results.push_back(step({inputs.back()}).front());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i)
    EXPECT_TRUE(at::equal(results[i], expected(inputs[i]))) << i;
  EXPECT_EQ(evaluations_, 2);  // once eagerly, once recorded
  EXPECT_EQ(step.use().replays, 4);
}

TEST_F(StepGraphTest, TheCallersInputsAreNotWrittenTo) {
  auto step = graph();
  const auto first = input(0.5);
  const auto image = first.noise.x_BLC.clone();
  for (int i = 0; i < 3; ++i) (void)step({i == 0 ? first : input(0.1)});
  EXPECT_TRUE(at::equal(first.noise.x_BLC, image));
}

TEST_F(StepGraphTest, BothBranchesOfGuidanceAreOneGraph) {
  auto step = graph();
  for (int i = 0; i < 3; ++i) {
    const std::vector<DenoiserInput> inputs = {input(0.3), input(0.4)};
    const auto velocities = step(inputs);
    EXPECT_TRUE(at::equal(velocities[0], expected(inputs[0])));
    EXPECT_TRUE(at::equal(velocities[1], expected(inputs[1])));
  }
  EXPECT_EQ(tape_.begins, 1);
}

TEST_F(StepGraphTest, OtherShapesAreRecordedAnew) {
  auto step = graph();
  for (const std::int64_t tokens : {4, 4, 6, 6, 4, 4}) {
    const auto in = input(0.5, tokens);
    EXPECT_TRUE(at::equal(step({in}).front(), expected(in)));
  }
  EXPECT_EQ(tape_.begins, 3);
  auto guided = input(0.5);
  guided.guidance_B = at::full({1}, 3.5);
  (void)step({guided});
  EXPECT_EQ(step.use().replays, 3);
}

// Residuals of one shape may belong to other blocks: two ControlNets, each in steps of its own.
TEST_F(StepGraphTest, OtherListsOfResidualsAreRecordedAnew) {
  auto step = graph();
  for (const auto& [doubles, singles] : {std::pair(2u, 1u), {2, 1}, {1, 2}, {1, 2}, {0, 3}}) {
    auto in = input(0.5);
    in.residuals.doubles.assign(doubles, at::zeros({1, 4, 2}));
    in.residuals.singles.assign(singles, at::zeros({1, 4, 2}));
    (void)step({in});
  }
  EXPECT_EQ(tape_.begins, 2);
  EXPECT_EQ(step.use().replays, 2);
}

// A denoiser of several branches may get them one after another, in the same shapes.
TEST_F(StepGraphTest, OtherChoicesAreRecordedAnew) {
  StepGraphOptions options{.device = at::kCPU};
  options.choice = [](const StepInfo& step) { return std::pair(step.branch, 0); };
  auto step = graph(options);
  for (const int branch : {1, 1, 2, 2, 1, 1}) {
    auto in = input(0.5);
    in.step.branch = branch;
    (void)step({in});
  }
  EXPECT_EQ(tape_.begins, 3);
  EXPECT_EQ(step.use().replays, 3);
}

// Its memory may be needed while pictures are decoded.
TEST_F(StepGraphTest, OnceForgottenIsGoneAndIsRecordedAnew) {
  auto step = graph();
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 3; ++i) {
      const auto in = input(0.1 * i);
      EXPECT_TRUE(at::equal(step({in}).front(), expected(in)));
    }
    EXPECT_EQ(tape_.graphs, 1);
    step.forget();
    EXPECT_EQ(tape_.graphs, 0);
    EXPECT_FALSE(tape_.outlived);
  }
  EXPECT_EQ(tape_.begins, 2);
  EXPECT_EQ(step.use().replays, 4);
}

TEST_F(StepGraphTest, AWatchedEvaluationIsNotRecorded) {
  auto step = graph();
  auto in = input(0.5);
  in.watch = [](const std::string&, const Tensor&) {};
  for (int i = 0; i < 3; ++i) (void)step({in});
  EXPECT_EQ(tape_.begins, 0);
  EXPECT_EQ(evaluations_, 3);
}

TEST_F(StepGraphTest, WhereNoGraphMayBeUsedEveryStepIsEvaluated) {
  auto step = graph({.device = at::kCPU, .why_not = "a CPU records no graphs"});
  for (int i = 0; i < 3; ++i) (void)step({input(0.5)});
  EXPECT_EQ(evaluations_, 3);
  EXPECT_EQ(step.use().why_not, "a CPU records no graphs");
}

TEST_F(StepGraphTest, OneRankGoesOnWithoutWhatCannotBeRecorded) {
  tape_.refusal = "not permitted";
  auto step = graph({.device = at::kCPU, .on_failure = StepGraphOptions::OnFailure::kGoOn});
  for (int i = 0; i < 3; ++i) {
    const auto in = input(0.5);
    EXPECT_TRUE(at::equal(step({in}).front(), expected(in)));
  }
  EXPECT_EQ(tape_.begins, 1);
  EXPECT_EQ(step.use().failure, "a step could not be recorded as a graph: not permitted");
  EXPECT_EQ(tape_.graphs, 0);
  EXPECT_FALSE(tape_.outlived) << "its memory is given back while a tensor lies in it";
}

// Whatever is created on first use is created then, not while recording.
TEST_F(StepGraphTest, AnEvaluationThatWasStoppedIsMadeOnceMore) {
  auto step = graph();
  is_stopped_ = true;
  EXPECT_THROW((void)step({input(0.5)}), Cancelled);
  is_stopped_ = false;
  (void)step({input(0.5)});
  EXPECT_EQ(tape_.begins, 0);
  (void)step({input(0.5)});
  EXPECT_EQ(tape_.begins, 1);
}

TEST_F(StepGraphTest, ARecordingThatWasStoppedIsMadeOnceMore) {
  auto step = graph({.device = at::kCPU, .on_failure = StepGraphOptions::OnFailure::kGoOn});
  (void)step({input(0.5)});
  is_stopped_ = true;
  EXPECT_THROW((void)step({input(0.5)}), Cancelled);
  EXPECT_FALSE(tape_.is_recording);
  EXPECT_EQ(step.use().failure, "");
  is_stopped_ = false;
  const auto in = input(0.5);
  EXPECT_TRUE(at::equal(step({in}).front(), expected(in)));
  EXPECT_EQ(step.use().replays, 1);
}

TEST_F(StepGraphTest, AnEpochsGraphIsOfNoUseInTheNext) {
  std::uint64_t epoch = 0;
  auto step = graph({.device = at::kCPU, .epoch = [&] { return epoch; }});
  for (int i = 0; i < 6; ++i) {
    if (i == 3) ++epoch;
    const auto in = input(0.5);
    EXPECT_TRUE(at::equal(step({in}).front(), expected(in)));
  }
  EXPECT_EQ(tape_.begins, 2);
  EXPECT_EQ(evaluations_, 4);
  EXPECT_EQ(step.use().replays, 4);
}

TEST_F(StepGraphTest, SeveralRanksFailTogether) {
  tape_.refusal = "not permitted";
  auto step = graph();
  (void)step({input(0.5)});
  EXPECT_THROW((void)step({input(0.5)}), std::runtime_error);
  EXPECT_EQ(tape_.graphs, 0);
}

// Counts recordings that are made at the same time.
struct AtOnce {
  std::atomic<int> now = 0, most = 0;
};

class CountedGraph : public DeviceGraph {
 public:
  explicit CountedGraph(AtOnce& counts) : counts_(counts) {}
  void begin() override {
    const int now = ++counts_.now;
    for (int most = counts_.most; most < now && !counts_.most.compare_exchange_weak(most, now);)
      continue;
  }
  void end() override { --counts_.now; }
  void replay() override {}

 private:
  AtOnce& counts_;
};

// LibTorch records once at a time in a process.
TEST_F(StepGraphTest, PipelinesOfAProcessRecordOneAfterAnother) {
  constexpr int kPipelines = 4, kRecordings = 100, kYields = 20;
  AtOnce counts;
  {
    std::vector<std::jthread> pipelines;
    for (int p = 0; p < kPipelines; ++p)
      pipelines.emplace_back([&] {
        StepGraph step({.device = at::kCPU,
                        .make = [&](at::Device) { return std::make_unique<CountedGraph>(counts); }},
                       one_by_one([](const DenoiserInput& in) {
                         for (int i = 0; i < kYields; ++i) std::this_thread::yield();
                         return in.noise.x_BLC;
                       }));
        for (int i = 0; i < 2 * kRecordings; ++i) (void)step({input(0.5, 4 + i / 2 % 2)});
      });
  }
  EXPECT_EQ(counts.most, 1);
}

// Its ranks meet in collectives while they record.
TEST_F(StepGraphTest, RanksOfAPipelineRecordTogether) {
  constexpr int kRanks = 2;
  AtOnce counts;
  std::atomic<int> arrived = 0;
  const auto meet = [&] {
    ++arrived;
    EXPECT_TRUE(wait_until([&] { return arrived == kRanks; }));
  };
  {
    std::vector<std::jthread> ranks;
    for (int r = 0; r < kRanks; ++r)
      ranks.emplace_back([&] {
        int evaluations = 0;
        StepGraph step({.device = at::kCPU,
                        .pipeline = &counts,
                        .make = [&](at::Device) { return std::make_unique<CountedGraph>(counts); }},
                       one_by_one([&](const DenoiserInput& in) {
                         if (++evaluations == 2) meet();  // the one that is recorded
                         return in.noise.x_BLC;
                       }));
        for (int i = 0; i < 2; ++i) (void)step({input(0.5)});
      });
  }
  EXPECT_EQ(counts.most, kRanks);
}

// Emptying LibTorch's caches spoils a recording of another rank.
TEST(RecordingTurn, IsPreparedOnlyWhileNobodyRecords) {
  const int pipeline = 0;
  int preparations = 0;
  const auto prepare = [&] { ++preparations; };
  for (const int want : {1, 2}) {
    const RecordingTurn first(&pipeline, prepare);
    std::jthread([&] { const RecordingTurn second(&pipeline, prepare); }).join();
    EXPECT_EQ(preparations, want);
  }
  EXPECT_THROW(RecordingTurn(&pipeline, [] { throw Error("no such GPU"); }), Error);
  const RecordingTurn after(&pipeline, prepare);
  EXPECT_EQ(preparations, 3) << "a preparation that failed leaves no turn behind";
}

// Counts like LibTorch's allocator.
struct FakePool : GraphPool {
  void stop() override {
    if (!gives_out) throw std::runtime_error("not recording");
    gives_out = false;
  }
  int num_holders() override {
    if (holders < 0) throw std::runtime_error("no such pool");
    return holders;
  }
  void release() override { --holders; }

  bool gives_out = false;
  int holders = -1;
};

TEST(GraphPool, IsGivenBackHoweverARecordingEnded) {
  for (const bool gives_out : {false, true})
    for (const int holders : {-1, 0, 1, 2}) {
      FakePool pool;
      pool.gives_out = gives_out;
      pool.holders = holders;
      give_back(pool);
      EXPECT_FALSE(pool.gives_out);
      EXPECT_EQ(pool.holders, std::min(holders, 0));
    }
}

}  // namespace braid::step_graph_test
