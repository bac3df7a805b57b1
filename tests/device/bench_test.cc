// An evaluation is timed as a picture's steps are made.
#include <gtest/gtest.h>

#include "on_gpu.h"
#include "pipeline/proofs/bench.h"

namespace braid::bench_test {

using BenchOnGpu = OnGpu;

BenchResult timed(Graphs graphs, int runs, int warm_ups) {
  return bench(deploy({.model = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo",
                       .dtype = Dtype::kFloat32,
                       .devices = {"cuda:0"},
                       .graphs = graphs}),
               {.probe = {.width = 32, .height = 32, .max_sequence_length = 8},
                .runs = runs,
                .warm_ups = warm_ups});
}

TEST_F(BenchOnGpu, RecordsTheEvaluationBeforeItIsTimed) {
  const auto result = timed(Graphs::kAuto, 2, 1);
  const bool records = make_device_graph(gpu()) != nullptr;
  EXPECT_EQ(result.graph.failure, "");
  EXPECT_EQ(result.graph.why_not, records ? "" : "this build records no graphs");
  EXPECT_EQ(result.graph.replays, records ? 3 : 0) << "the timed ones, and one before them";
  EXPECT_EQ(result.slowest().seconds.size(), 2u);
  for (const auto seconds : result.slowest().seconds) EXPECT_GT(seconds, 0);
}

TEST_F(BenchOnGpu, RecordsNothingWhereGraphsAreOff) {
  const auto result = timed(Graphs::kOff, 1, 0);
  EXPECT_EQ(result.graph.why_not, "graphs are off");
  EXPECT_EQ(result.graph.replays, 0);
}

}  // namespace braid::bench_test
