// Graphs around a cache's decision, with graphs simulated on the host: while one records, work is
// noted and not done; a replay does it again on the same memory.
#include "pipeline/graphs/part_graphs.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace braid::part_graphs_test {

using testing::ElementsAre;
using Work = std::vector<std::function<void()>>;

// The host as a device that records.
struct Host {
  Work* recording = nullptr;               // of the graph that records
  int begins = 0, graphs = 0;              // graphs: those alive
  std::map<std::string, int> evaluations;  // by part, replays left out

  // What `compute` returns, in memory of its own. `compute` reads its tensors when it runs.
  Tensor run(const std::string& part, const std::function<Tensor()>& compute) {
    ++evaluations[part];
    const auto made = at::empty_like(compute());
    const auto work = [=] { made.copy_(compute()); };
    recording ? recording->push_back(work) : work();
    return made;
  }
};

class HostGraph : public DeviceGraph {
 public:
  explicit HostGraph(Host& host) : host_(host) { ++host_.graphs; }
  ~HostGraph() override { --host_.graphs; }
  void begin() override {
    EXPECT_EQ(host_.recording, nullptr);
    host_.recording = &work_;
    ++host_.begins;
  }
  void end() override { host_.recording = nullptr; }
  void replay() override {
    for (const auto& work : work_) work();
  }

 private:
  Host& host_;
  Work work_;
};

enum class Middle { kAdds, kHasNoBlocks };

// The first block adds the timestep, the middle ten times that, as in step_cache_test.
CachedParts parts_on(Host& host, Middle middle = Middle::kAdds) {
  const auto adding = [&host](const std::string& part, double times) {
    return [&host, part, times](const DenoiserInput& in, const Tensor& x) {
      return host.run(part, [=] { return x + times * in.timestep_B.view({-1, 1, 1}); });
    };
  };
  CachedParts parts{.input =
                        [&host](const DenoiserInput& in, const Tensor&) {
                          return host.run("input", [=] { return in.noise.x_BLC * 2; });
                        },
                    .first = adding("first", 1),
                    .middle = adding("middle", 10),
                    .output = adding("output", 0)};
  if (middle == Middle::kHasNoBlocks)
    parts.middle = [](const DenoiserInput&, const Tensor& x) { return x; };
  return parts;
}

StepGraphOptions on(Host& host) {
  return {.device = at::kCPU,
          .make = [&](at::Device) { return std::make_unique<HostGraph>(host); }};
}

// The outputs of steps with these timesteps and tokens, on the way through `over`.
struct Ran {
  std::vector<Tensor> outputs;
  std::vector<int> full_steps;
};

Ran ran(const CachedParts& parts, const std::vector<std::pair<double, std::int64_t>>& steps,
        std::int64_t pictures = 1) {
  StepCache cache({.mode = CacheMode::kFirstBlock, .threshold = 0.1}, Mesh{});
  const auto predict = cache.over(parts);
  Ran ran;
  for (const auto& [timestep, tokens] : steps) {
    const auto noise = at::arange(pictures * tokens * 3, at::kFloat).view({pictures, tokens, 3});
    ran.outputs.push_back(predict({.noise = {noise, at::zeros({tokens, 3})},
                                   .text = {at::zeros({pictures, 1, 3}), at::zeros({1, 3})},
                                   .timestep_B = at::full({pictures}, timestep),
                                   .step = {.number = int(ran.outputs.size())}},
                                  {}));
  }
  ran.full_steps = cache.full_steps(0);
  return ran;
}

void expect_same(const Ran& got, const Ran& want) {
  EXPECT_EQ(got.full_steps, want.full_steps);
  ASSERT_EQ(got.outputs.size(), want.outputs.size());
  for (std::size_t i = 0; i < got.outputs.size(); ++i)
    EXPECT_TRUE(at::equal(got.outputs[i], want.outputs[i])) << "step " << i;
}

const std::vector<std::pair<double, std::int64_t>> kSteps = {
    {1, 4}, {1.0625, 4}, {1.125, 4}, {1.1875, 4}, {2, 4}, {3, 4}, {3, 4}};

// Earlier outputs, which a replay must not overwrite, are compared at the end.
TEST(PartGraphs, DecideAndComputeAsPartsWithoutGraphsDo) {
  for (const std::int64_t pictures : {1, 3}) {
    Host host, plain;
    const auto want = ran(parts_on(plain), kSteps, pictures);
    PartGraphs graphs(on(host));
    expect_same(ran(graphs.over(parts_on(host)), kSteps, pictures), want);
    EXPECT_THAT(want.full_steps, ElementsAre(0, 2, 4, 5));
    EXPECT_EQ(host.begins, 4) << "one graph per part, for all pictures";
    for (const auto& [part, evaluations] : host.evaluations)
      EXPECT_EQ(evaluations, 2) << part << ": once eagerly, once recorded";
    const auto evaluated = pictures * (3 * 7 + 4);
    EXPECT_EQ(graphs.use().replays, evaluated - 4);
    EXPECT_EQ(graphs.use().failure, "");
  }
}

TEST(PartGraphs, RecordOtherShapesAnew) {
  const std::vector<std::pair<double, std::int64_t>> small = {{1, 4}, {2, 4}, {3, 4}},
                                                     large = {{1, 6}, {2, 6}, {3, 6}};
  Host host, plain;
  PartGraphs graphs(on(host));
  const auto parts = graphs.over(parts_on(host));
  for (const auto& steps : {small, large, small})
    expect_same(ran(parts, steps), ran(parts_on(plain), steps));
  EXPECT_EQ(host.begins, 3 * 4);
  EXPECT_EQ(host.graphs, 4) << "graphs of shapes that are gone stay";
}

// An evaluation of this branch of this picture, of as many tokens of text.
DenoiserInput input_of(int branch, int picture, std::int64_t text = 1) {
  return {.noise = {at::ones({1, 4, 3}), at::zeros({4, 3})},
          .text = {at::zeros({1, text, 3}), at::zeros({text, 3})},
          .timestep_B = at::ones({1}),
          .step = {.branch = branch, .picture = picture}};
}

// Keys that are kept per branch and picture lie at addresses of their own, which the host chooses:
// a part with such keys returns the sum of state, key and timestep.
struct PartWithKeys {
  explicit PartWithKeys(Host& on) : host(on) {}

  Tensor operator()(const DenoiserInput& in, const Tensor& state) {
    const auto key = keys.at(std::pair(in.step.branch, in.step.picture));
    return host.run("first", [=] { return state + key + in.timestep_B.view({-1, 1, 1}); });
  }
  Host& host;
  std::map<std::pair<int, int>, Tensor> keys = {{{0, 0}, at::full({1}, 10)},
                                                {{1, 0}, at::full({1}, 20)},
                                                {{0, 1}, at::full({1}, 30)},
                                                {{1, 1}, at::full({1}, 40)}};
};

// All branches and pictures have the same shapes behind a prefix.
TEST(PartGraphs, AttendToTheKeysOfTheirOwnBranchAndPicture) {
  for (const int pictures : {1, 2}) {
    Host host;
    PartWithKeys part(host);
    bool are_kept = true;
    std::uint64_t epoch = 0;
    auto options = on(host);
    options.epoch = [&] { return epoch; };
    options.choice = [&](const StepInfo& step) {
      return are_kept ? std::pair(step.branch, step.picture) : std::pair(0, 0);
    };
    PartGraphs graphs(options);
    CachedParts parts;
    parts.first = std::ref(part);
    const auto first = graphs.over(parts).first;
    const auto run = [&](const std::string& when) {
      for (int step = 0; step < 4; ++step)
        for (int branch = 0; branch < 2; ++branch)
          for (int picture = 0; picture < pictures; ++picture) {
            const auto state = at::full({1, 4, 3}, step);
            const auto key = part.keys.at({branch, picture});
            EXPECT_TRUE(at::equal(first(input_of(branch, picture), state), state + key + 1))
                << when << ", step " << step << ", branch " << branch << ", picture " << picture;
          }
    };
    run("kept");
    EXPECT_EQ(host.begins, 2) << "as many graphs as have memory";
    EXPECT_EQ(graphs.use().replays, 2 * 3);
    for (auto& [who, key] : part.keys) key = key + 100;
    ++epoch;
    run("kept anew");
    for (auto& [who, key] : part.keys) key = at::zeros({1});
    are_kept = false;
    ++epoch;
    const auto before = host.begins;
    run("not kept");
    EXPECT_EQ(host.begins - before, 1) << "one graph serves all";
    EXPECT_EQ(host.graphs, 1);
  }
}

// A negative prompt has another length than the prompt.
TEST(PartGraphs, ReplayBranchesOfUnequalLengths) {
  Host host;
  PartGraphs graphs(on(host));
  const auto first = graphs.over(parts_on(host)).first;
  for (int step = 0; step < 5; ++step)
    for (int branch = 0; branch < 2; ++branch) {
      const auto state = at::full({1, 5 + branch, 3}, step);
      EXPECT_TRUE(at::equal(first(input_of(branch, 0, 1 + branch), state), state + 1));
    }
  EXPECT_EQ(host.begins, 2);
  EXPECT_EQ(graphs.use().replays, 2 * 4);
  graphs.forget();
  EXPECT_EQ(host.graphs, 0);
  EXPECT_EQ(graphs.use().replays, 2 * 4) << "what was done stays counted";
}

// Pictures that have ended leave their graphs to those that fit, and hold none of others.
TEST(PartGraphs, GiveUpTheGraphsOfPicturesThatAreGone) {
  Host host;
  PartGraphs graphs(on(host));
  const auto first = graphs.over(parts_on(host)).first;
  const auto state = at::zeros({1, 5, 3});
  for (int step = 0; step < 3; ++step)
    for (int picture = 0; picture < 2; ++picture)
      (void)first(input_of(0, picture, 1 + picture), state);
  EXPECT_EQ(host.graphs, 2);
  graphs.end_pictures();
  (void)first(input_of(0, 0, 1), state);
  EXPECT_EQ(host.begins, 2) << "the same again";
  EXPECT_EQ(host.graphs, 2);
  for (int step = 0; step < 3; ++step) (void)first(input_of(0, 1, 7), state);
  EXPECT_EQ(host.begins, 3);
  EXPECT_EQ(host.graphs, 2) << "that of the picture that goes on, and the new one";
}

// The inputs keep their shapes, and the state does not: the graph of the old state is stale.
TEST(PartGraphs, RecordOtherStatesAnew) {
  Host host;
  PartGraphs graphs(on(host));
  const auto first = graphs.over(parts_on(host)).first;
  const DenoiserInput in{.noise = {at::ones({1, 4, 3}), at::zeros({4, 3})},
                         .text = {at::zeros({1, 1, 3}), at::zeros({1, 3})},
                         .timestep_B = at::ones({1})};
  for (const std::int64_t rows : {5, 5, 5, 8, 8, 8, 5}) {
    const auto state = at::randn({1, rows, 3});
    EXPECT_TRUE(at::equal(first(in, state), state + 1)) << rows;
  }
}

TEST(PartGraphs, KeepAResultThatIsTheState) {
  Host host, plain;
  PartGraphs graphs(on(host));
  const auto parts = graphs.over(parts_on(host, Middle::kHasNoBlocks));
  expect_same(ran(parts, kSteps), ran(parts_on(plain, Middle::kHasNoBlocks), kSteps));
  const auto a = at::ones({1, 4, 3}), b = at::zeros({1, 4, 3});
  const DenoiserInput in{.noise = {a, at::zeros({4, 3})}, .text = {a, at::zeros({4, 3})}};
  const auto first = parts.middle(in, a);
  (void)parts.middle(in, b);
  EXPECT_TRUE(at::equal(first, a));
}

TEST(PartGraphs, LeaveOutPartsOfOtherStagesAndSayWhyNotToRecord) {
  Host host;
  auto options = on(host);
  options.why_not = "graphs are off";
  PartGraphs graphs(options);
  auto parts = parts_on(host);
  parts.input = parts.output = {};
  const auto over = graphs.over(parts);
  EXPECT_FALSE(over.input);
  EXPECT_FALSE(over.output);
  const DenoiserInput in{.noise = {at::ones({1, 4, 3}), at::zeros({4, 3})},
                         .text = {at::zeros({1, 1, 3}), at::zeros({1, 3})},
                         .timestep_B = at::ones({1})};
  for (int i = 0; i < 3; ++i) (void)over.first(in, at::ones({1, 4, 3}));
  EXPECT_EQ(host.begins, 0);
  EXPECT_EQ(graphs.use().why_not, "graphs are off");
}

}  // namespace braid::part_graphs_test
