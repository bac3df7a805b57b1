// What a predicted step takes at its edges: a full host, the hand-over between stages, copies that
// a stage's own work hides, and ControlNets.
#include <gtest/gtest.h>

#include <map>

#include "pipeline/deployment/deployment.h"
#include "pipeline/families/flux/flux.h"
#include "pipeline/planner/instant_machine.h"
#include "pipeline/planner/planned.h"

namespace braid::planner_time_edges_test {

// An axis that fills a host does not leave it; the one around it does.
TEST(PlannedTimeEdges, AxesThatFillAHostStayWithinIt) {
  const auto job = flux_dev_replicated();
  auto hosts = machine(8, kBytes);
  hosts.network = kLatency;
  hosts.devices_per_host = 4;
  auto seconds = communication(job, hosts, {.ring = 2, .tp = 4});
  const double reduced = 76 * 4608.0 / 2 * 3072 * 2;
  EXPECT_NEAR(seconds["tp"] / (1.5 * reduced), 1, 1e-9);
  EXPECT_NEAR(seconds["ring"], 57, 1e-9);  // a shift per block
}

// Hosts of three devices hold the first of the pairs (0, 1) and (2, 3), but not the second.
TEST(PlannedTimeEdges, PairsOnTwoHostsUseTheNetwork) {
  const auto job = flux_dev_replicated();
  auto hosts = machine(4, kBytes);
  hosts.network = kLatency;
  const auto seconds_of_hosts_with = [&](int devices) {
    hosts.devices_per_host = devices;
    return communication(job, hosts, {.ring = 2, .tp = 2})["tp"];
  };
  const double within = seconds_of_hosts_with(2), across = seconds_of_hosts_with(1);
  EXPECT_NE(within, across);
  EXPECT_EQ(seconds_of_hosts_with(3), across);
  EXPECT_EQ(seconds_of_hosts_with(4), within);
}

// FLUX.2's state has its tokens, and the modulations of three kinds and a vector beside them.
TEST(PlannedTimeEdges, StagesHandOverTokensAndVectors) {
  const auto job = surveyed(named_job("klein-9b-kv"));
  const double tokens = double(job.image_tokens() + job.text_tokens), hidden = 4096;
  const double ticks = 2;  // one picture, two stages
  EXPECT_NEAR(communication(job, machine(2, kBytes), {.pp = 2})["pp"],
              ticks * (tokens + 5 * 3 + 1) * hidden * 2, 1);
}

// A stage of a slow device does a small part of the work, and all wait for the slowest.
TEST(PlannedTimeEdges, NoStageWaitsForLessThanNothing) {
  for (const auto* const devices : {"2xh100,1xcpu", "h200,rx-7900-xtx"}) {
    const auto machine = machine_of(devices);
    const int count = int(machine.devices.size());
    for (const auto& shares : {std::vector{8, 8, 1}, std::vector{1, 8, 8}}) {
      Degrees grid{.pp = count};
      grid.shares.pp.assign(shares.begin(), shares.begin() + count);
      const auto step = plan_layout(flux_dev(), machine, grid).step;
      EXPECT_GE(step.bubbles, 0) << devices;
      EXPECT_GT(step.compute, 0) << devices;
      EXPECT_GT(step.total(), step.compute + step.bubbles) << devices;
    }
  }
}

// While a stage computes on one picture it copies for the next: only the time of that hides copies,
// not the time of the whole step.
TEST(PlannedTimeEdges, CopiesOfAStageHideBehindItsOwnPicture) {
  auto job = flux_dev();
  job.memory.offload.transformer = OffloadMode::kBlock;
  job.num_pictures = 2;
  const auto step_at = [&](double flops) {
    auto device = instant();
    device.bfloat16_flops = device.float32_flops = flops;
    device.link = "pcie4";
    return plan_layout(job, machine(2, kBytes, device), {.pp = 2}).step;
  };
  constexpr double kTicks = 3, kStages = 2;
  const double copies = step_at(1e30).copies;
  const auto busy_seconds = [&](const StepTime& step) {  // all ticks
    return step.bubbles + step.compute + step.memory;
  };
  // a device with which computing takes two thirds of the time of copying
  const double flops = 1e15 * busy_seconds(step_at(1e15)) / (copies * 2 / 3);
  const auto step = step_at(flops);
  EXPECT_NEAR(busy_seconds(step) / copies, 2.0 / 3, 0.01);
  EXPECT_NEAR(step.copies / (copies - busy_seconds(step)), 1, 1e-6);
  EXPECT_GT(busy_seconds(step) / kTicks * kStages * 2, copies / kTicks);  // of a whole step
}

// Read once for all pictures of a batch; what they compute on is each picture's own.
TEST(PlannedTimeEdges, ControlNetsReadTheirWeightsOnceForABatch) {
  const auto model =
      std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity/controlnets/model";
  const DeployOptions asked{
      .pipeline = {.model = model, .controlnets = {model / "controlnet_1"}, .device = "cuda"}};
  const auto deployment = deploy(asked, described_host(devices_named("--devices", "a100")));
  const auto job_of = [&](int pictures) {
    return braid::job_of(deployment,
                         {.prompts = {"a"}, .num_images = pictures, .batch_size = pictures});
  };
  auto device = instant();
  device.memory_speed = 1;
  const auto seconds = [&](int pictures) {
    return plan_layout(job_of(pictures), machine(1, kBytes, device), {}).step.compute;
  };
  const auto job = job_of(1);
  double weights = 0;
  for (const auto& tensor :
       job.tensors->of(*job.family->parts(Part::Role::kControl).front()).tensors)
    if (tensor.use == PageUse::kRepeated)
      weights += double(numbers_of(tensor, 1) * tensor.element_bytes());
  EXPECT_GT(weights, 0);
  EXPECT_NEAR((2 * seconds(1) - seconds(2)) / weights, 1, 1e-6);
}

// Tensor parallel ranks send 2 (n - 1) / n of what they sum, and n - 1 times what they gather: here
// nothing, with replicated modulation. The busiest rank has three quarters of the tokens.
TEST(PlannedTimeEdges, SumsUnderUnequalSharesAreThoseOfTheRanksOwnTokens) {
  const auto job = flux_dev_replicated();
  const double reduced = 76 * 4608.0 * 3 / 4 * 3072 * 2;
  for (const auto& ring : {std::vector{3, 1}, std::vector{1, 3}}) {
    const Degrees grid{.ring = 2, .tp = 4, .shares = {.ring = ring}};
    const auto seconds = communication(job, machine(8, kBytes), grid)["tp"];
    EXPECT_NEAR(seconds / (1.5 * reduced), 1, 1e-9) << ring.front();
  }
}

// 19 double blocks of the transformer have four sums of one side's tokens each, which are two of
// all; 38 single blocks have one; each of the net's 5 double blocks has two more.
TEST(PlannedTimeEdges, SumsOfControlNetsAreSums) {
  const FluxControlNetConfig net{.flux = {.num_double = 5, .num_single = 0}};
  PlanJob job{.family = make_flux_family({.controlnets = {net}})};
  job.layout.modulation = SharedModulation::kNo;
  job = surveyed(std::move(job));
  const auto along_tp = predict_traffic(job, {.tp = 4}, 0).front();
  ASSERT_EQ(along_tp.axis, "tp");
  ASSERT_EQ(along_tp.traffic.all_gathers, 0);
  const auto bytes = double(along_tp.traffic.bytes);
  EXPECT_DOUBLE_EQ(bytes, (38 + 38 + 2 * 5) * 4608.0 * 3072 * 2);
  EXPECT_NEAR(communication(job, machine(4, kBytes), {.tp = 4})["tp"] / (1.5 * bytes), 1, 1e-9);
}

}  // namespace braid::planner_time_edges_test
