// What ranks send each other and read from files equals the formulas, byte for byte.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/thread.h"
#include "models/flux/model.h"
#include "models/flux/names.h"
#include "models/flux/sharding.h"
#include "parallel/layout.h"
#include "pipeline/loaded/model.h"
#include "pipeline/planner/counted_parameters.h"
#include "pipeline/planner/made_model.h"
#include "pipeline/planner/planner.h"
#include "pipeline/planner/traffic_text.h"

namespace braid::traffic_test {

// 24 heads divide by 2, 3, 4, 6 and 8; 3 heads do not, and are fewer than most ranks; 8 do so
// partly.
const FluxConfig kManyHeads{.in_channels = 16,
                            .out_channels = 16,
                            .num_double = 1,
                            .num_single = 2,
                            .num_heads = 24,
                            .head_width = 6,
                            .text_width = 10,
                            .pooled_width = 7,
                            .guidance_embeds = true,
                            .axes = {2, 2, 2}};
const FluxConfig kOnlyDoubles{.in_channels = 12,
                              .out_channels = 12,
                              .num_double = 2,
                              .num_single = 0,
                              .num_heads = 3,
                              .head_width = 8,
                              .text_width = 5,
                              .pooled_width = 4,
                              .axes = {4, 2, 2}};
const FluxConfig kOnlySingles{.in_channels = 4,
                              .out_channels = 4,
                              .num_double = 0,
                              .num_single = 3,
                              .num_heads = 8,
                              .head_width = 6,
                              .text_width = 9,
                              .pooled_width = 3,
                              .axes = {2, 2, 2}};
const FluxConfig kModels[] = {kManyHeads, kOnlyDoubles, kOnlySingles};

struct Counted {
  TrafficByAxis traffic, of_modulations;  // in a step, and before a picture's first one
  BytesRead read;
};

// Loads the transformer and runs one step's evaluations on every rank of the grid.
std::vector<Counted> run(const PlanJob& job, const FluxConfig& config, const Degrees& grid,
                         const std::filesystem::path& file) {
  std::vector<Counted> ranks(std::size_t(grid.product()));
  run_ranks({.size = grid.product()}, [&](const Group& world) {
    auto& counted = ranks[std::size_t(world.rank())];
    const auto mesh = make_mesh(world, grid);
    auto checkpoint = Checkpoint::open_file(file);
    auto names = flux_names(checkpoint);
    const auto part = part_of(std::make_shared<const Flux>(
        config,
        Weights(std::move(checkpoint), std::move(names),
                {.dtype = job.dtype,
                 .on_read = [&](const BytesRead& read) { counted.read += read; },
                 .tensor_parallel = mesh.tp},
                flux_sharding(config, job.layout.modulation)),
        attend_over(mesh, job.layout.ring_form), blocks_of_rank(*job.family, mesh, at::kCPU, 1)));
    auto in = made_input(job);
    const auto at_first = traffic_of(mesh);
    const auto made = modulate_over(mesh.pp, part)({picture_of(in, 0)});
    const auto before = traffic_of(mesh);
    counted.of_modulations = traffic_between(at_first, before);
    in.modulations_BM = made.front().expand({job.batch_size, part.num_modulations});
    const auto predict = predict_over(mesh, part);
    (void)predict(std::vector<DenoiserInput>(std::size_t(job.branches), in));
    counted.traffic = traffic_between(before, traffic_of(mesh));
  });
  return ranks;
}

Traffic along(const TrafficByAxis& traffic, const std::string& axis) {
  for (const auto& one : traffic)
    if (one.axis == axis) return one.traffic;
  throw std::out_of_range(axis);
}

// Columns of row-parallel layers, of which a rank reads its own row by row.
std::int64_t strided_parameters(const FluxConfig& c, const Stage& s, int tp) {
  const auto h = c.hidden(), m = c.mlp_hidden();
  const auto doubles = std::clamp<std::int64_t>(c.num_double - s.first_block, 0, s.num_blocks);
  const auto singles = s.num_blocks - doubles;
  return tp == 1 ? 0 : (doubles * 2 * (h * h + m * h) + singles * (h + m) * h) / tp;
}

Machine on_cpus(int ranks) {
  auto device = devices_named("", "b200").front();
  device.name = "cpu";
  return {.devices = std::vector(std::size_t(ranks), device), .link = {}, .network = {}};
}

void expect_as_predicted(const PlanJob& any_job, const FluxConfig& config, const Degrees& grid,
                         const MadeFile& file, std::int64_t stored_bytes) {
  const auto job = surveyed(any_job);
  const auto ranks = run(job, config, grid, file.path());
  const auto stages = plan_stages(job, on_cpus(grid.product()), grid);
  for (int rank = 0; rank < grid.product(); ++rank) {
    const auto& counted = ranks[std::size_t(rank)];
    const auto& stage = stages[std::size_t(place_of(grid, rank).pp)];
    const auto want = predict_traffic(job, grid, rank, stage);
    EXPECT_EQ(text_of_traffic(counted.traffic), text_of_traffic(want))
        << layout_name(grid) << " rank " << rank;
    if (config.num_heads % grid.tp != 0) continue;  // the closed form is of equal shares
    const auto parameters = parameters_of(stage, config, job.layout.modulation).of_rank(grid.tp);
    EXPECT_EQ(counted.read.all, stored_bytes * parameters) << layout_name(grid) << " rank " << rank;
    EXPECT_EQ(counted.read.strided, stored_bytes * strided_parameters(config, stage, grid.tp));
  }
}

using Runs = std::vector<std::int64_t>;  // tokens of references

// Every layout of a rank count, on models of all kinds; options and dtypes alternate.
class Predicted : public testing::TestWithParam<int> {};

TEST_P(Predicted, CountsAndBytesAreThoseOfRuns) {
  const at::ScalarType dtypes[] = {at::kFloat, at::kBFloat16, at::kHalf};
  int turn = 0, runs = 0;
  for (const auto& config : kModels) {
    const auto stored = dtypes[(turn + 1) % 3];
    const MadeFile file(config, stored);
    for (const auto& grid : grids_of(GetParam())) {
      ++turn;
      PlanJob job{
          .family = make_flux_family({.flux = config}),
          .dtype = dtypes[turn % 3],
          .width = 16 * (5 + turn % 3),
          .height = 16 * 5,
          .text_tokens = 8 + turn % 7,
          .batch_size = 1 + turn % 4,
          .num_pictures = 100,
          .branches = grid.cfg > 1 || turn % 5 == 0 ? 2 : 1,
          .pictures = {.references = turn % 2 == 0 ? Runs{} : Runs{11, 9}},
          .layout = {.modulation = turn % 4 != 0 ? SharedModulation::kYes : SharedModulation::kNo,
                     .ring_form = turn % 3 == 0 ? RingForm::kGather : RingForm::kShift}};
      if (!plan_layout(job, on_cpus(GetParam()), grid).fits()) continue;
      expect_as_predicted(job, config, grid, file, std::int64_t(c10::elementSize(stored)));
      ++runs;
    }
  }
  EXPECT_GE(runs, 3);
}

std::string number_of_ranks(const testing::TestParamInfo<int>& info) {
  return "Of" + std::to_string(info.param);
}
INSTANTIATE_TEST_SUITE_P(Ranks, Predicted, testing::Values(3), number_of_ranks);
INSTANTIATE_TEST_SUITE_P(SlowRanks, Predicted, testing::Values(1, 2, 4, 6, 8), number_of_ranks);

PlanJob small_job() {
  return {.family = make_flux_family({.flux = kManyHeads}),
          .dtype = at::kFloat,
          .width = 112,
          .height = 80,  // 35 image tokens
          .text_tokens = 21};
}

// docs/parallelism.md states this, independent of the planner.
TEST(Traffic, IsTwoReductionsADoubleBlockAndOneASingleBlock) {
  auto job = small_job();
  const MadeFile file(kManyHeads, at::kFloat);
  const std::int64_t hidden = 144, tokens = 56;
  const auto shared = run(job, kManyHeads, {.tp = 4}, file.path()).front();
  const Traffic of_a_step{.all_reduces = 2 * 1 + 2, .bytes = 4 * 4 * tokens * hidden};
  EXPECT_EQ(along(shared.traffic, "tp"), of_a_step);
  EXPECT_EQ(along(shared.of_modulations, "tp"),
            (Traffic{.all_gathers = 2 * 1 + 2 + 1, .bytes = 4 * (2 * 6 + 2 * 3 + 2) * hidden / 4}));
  job.layout.modulation = SharedModulation::kNo;
  const auto whole = run(job, kManyHeads, {.tp = 4}, file.path()).front();
  EXPECT_EQ(along(whole.traffic, "tp"), of_a_step);
  EXPECT_EQ(along(whole.of_modulations, "tp"), Traffic());
}

// The first stage embeds the timestep for all stages.
TEST(Traffic, OfModulationsAmongStagesIsABroadcastOfConditioningVectors) {
  const MadeFile file(kManyHeads, at::kFloat);
  const auto ranks = run(small_job(), kManyHeads, {.pp = 3}, file.path());
  EXPECT_EQ(along(ranks.front().of_modulations, "pp"),
            (Traffic{.broadcasts = 1, .bytes = 4 * 144}));
}

TEST(Traffic, IsTwoTradesABlockWithUlyssesAndOneGather) {
  const MadeFile file(kManyHeads, at::kFloat);
  const auto ranks = run(small_job(), kManyHeads, {.ulysses = 5}, file.path());
  const std::int64_t tokens = 7 + 5, head = 6;  // of the first rank: 35 and 21 over 5 ranks
  const auto trade = along(ranks.front().traffic, "ulysses");
  EXPECT_EQ(trade.all_to_alls, 2 * 3);
  EXPECT_EQ(trade.bytes, 4 * 3 * head * (3 * 24 * tokens + 5 * 56));  // 24 heads over 5: 5 here
  EXPECT_EQ(along(ranks.front().traffic, "context"),
            (Traffic{.all_gathers = 1, .bytes = 4 * 7 * 16}));
  // the last rank has fewer tokens and heads
  EXPECT_EQ(along(ranks.back().traffic, "ulysses").bytes,
            4 * 3 * head * (3 * 24 * (7 + 4) + 4 * 56));
}

TEST(Traffic, IsAShiftLessThanRanksABlockWithRing) {
  auto job = small_job();
  const MadeFile file(kManyHeads, at::kFloat);
  const auto shifted =
      along(run(job, kManyHeads, {.ring = 4}, file.path()).front().traffic, "ring");
  // 35 and 21 tokens over 4 ranks: 9 9 9 8 and 6 5 5 5. Rank 0 passes on all keys but rank 1's.
  EXPECT_EQ(shifted.shifts, 3 * 3);
  EXPECT_EQ(shifted.bytes, 4 * 3 * 2 * 144 * (56 - 14));
  job.layout.ring_form = RingForm::kGather;
  const auto gathered =
      along(run(job, kManyHeads, {.ring = 4}, file.path()).front().traffic, "ring");
  EXPECT_EQ(gathered, (Traffic{.all_gathers = 3, .bytes = 4 * 3 * 2 * 144 * 15}));
}

TEST(Traffic, OfGuidanceIsOneGatherOfAVelocity) {
  auto job = small_job();
  job.branches = 2;
  const MadeFile file(kManyHeads, at::kFloat);
  const auto ranks = run(job, kManyHeads, {.cfg = 2}, file.path());
  EXPECT_EQ(along(ranks[1].traffic, "cfg"), (Traffic{.all_gathers = 1, .bytes = 4 * 35 * 16}));
}

}  // namespace braid::traffic_test
