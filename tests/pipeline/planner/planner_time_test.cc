// The components of a predicted step, each with the others taking no time.
#include <gtest/gtest.h>

#include <map>

#include "pipeline/planner/instant_machine.h"
#include "pipeline/planner/planned.h"

namespace braid::planner_time_test {

PlanJob replicated() { return flux_dev_replicated(); }

constexpr double kTokens = 4608, kHidden = 3072, kBlocks = 57;

TEST(PlannedTime, OfComputeIsThatOfMatrixProductsAndAttention) {
  auto device = instant();
  device.bfloat16_flops = 1e12;
  device.float32_flops = 1e11;
  device.reached = 0.5;
  auto job = flux_dev();
  const double flop =
      kBlocks * (24 * kHidden * kHidden * kTokens + 4 * kTokens * kTokens * kHidden);
  const auto compute = [&](const Degrees& grid) {
    return plan_layout(job, machine(grid.product(), kBytes, device), grid).step.compute;
  };
  EXPECT_NEAR(compute({}) / (flop / 0.5e12), 1, 1e-9);
  for (const auto& grid :
       {Degrees{.tp = 4}, Degrees{.ring = 4}, Degrees{.ulysses = 4}, Degrees{.ring = 2, .tp = 2}})
    EXPECT_NEAR(compute(grid) / (flop / 0.5e12 / 4), 1, 1e-9) << layout_name(grid);
  job.dtype = at::kFloat;
  EXPECT_NEAR(compute({}) / (flop / 0.5e11), 1, 1e-9);
}

TEST(PlannedTime, OfMemoryIsWeightsAndWhatOperationsReadAndWrite) {
  auto device = instant();
  device.memory_speed = 1;
  auto job = flux_dev();
  const auto memory = [&](const Degrees& grid) {
    return plan_layout(job, machine(grid.product(), kBytes, device), grid).step.memory;
  };
  // a step reads all but what runs once per picture: adaLN layers, and the embedders of their
  // inputs
  const double modulators = (19 * 12 + 38 * 3 + 2) * kHidden * (kHidden + 1);
  const double embedders = (2 * 256 + 768 + 3 * (kHidden + 2)) * kHidden;
  const double weights = 2 * (11'901'408'320.0 - modulators - embedders);
  // in hidden widths per token; and 8 before and behind the blocks
  const double vectors = 19 * (9 + 4) + 38 * (5 + 4) + 8;
  EXPECT_NEAR(memory({}) / (weights + vectors * kTokens * kHidden * 2), 1, 1e-9);
  // two ranks read half of the blocks' weights, and sum 76 times: each reads two parts and a
  // residual of its half and writes that; gated residuals are then left out, 3 widths each but for
  // those with norms, 2
  const double shared = 19 * (9 + 2 - 5) + 38 * (5 + 2 - 3) + 8, sums = 76 * 4.0 / 2;
  EXPECT_NEAR(memory({.tp = 2}) / (weights / 2 + (shared + sums) * kTokens * kHidden * 2), 1, 0.01);
  job.layout.collectives =
      Collectives::kNative;  // each reads sum and residual of all, and writes all
  EXPECT_NEAR(memory({.tp = 2}) / (weights / 2 + (shared + 76 * 3.0) * kTokens * kHidden * 2), 1,
              0.01);
  job.layout.collectives = Collectives::kOrdered;
  EXPECT_GT(memory({.ring = 2}), memory({.ulysses = 2}));  // float32 merges
  job.batch_size = job.num_pictures = 2;                   // weights are still read once
  EXPECT_NEAR(memory({}) / (weights + 2 * vectors * kTokens * kHidden * 2), 1, 1e-9);
}

TEST(PlannedTime, OfMemoryReadsWeightsInTheirForm) {
  auto device = instant();
  device.memory_speed = 1;
  auto job = flux_dev();
  job.width = job.height = job.text_tokens = 16;  // so that tokens hardly count
  const auto memory = [&](const Degrees& grid) {
    return plan_layout(job, machine(grid.product(), kBytes, device), grid).step.memory;
  };
  const double wide = memory({}), half = memory({.tp = 2});
  job.memory.quantize = Quantize::kInt8;
  // the matrices of the blocks, which a step reads: a byte less per number
  const double matrices = (19.0 * 2 * 12 + 38.0 * 12) * kHidden * kHidden;
  EXPECT_NEAR((wide - memory({})) / matrices, 1, 0.01);
  EXPECT_NEAR((half - memory({.tp = 2})) / (matrices / 2), 1, 0.01);
}

// Matrices of the blocks, without the modulations that are made once per picture.
constexpr double kCopied = (19.0 * 2 * 12 + 38.0 * 12) * kHidden * kHidden * 2;

TEST(PlannedTime, OfCopiesIsWhatNothingHides) {
  auto device = instant();
  device.link = "pcie4";
  device.memory_speed = 1e12;
  auto job = flux_dev();
  job.memory.offload.transformer = OffloadMode::kBlock;
  const double link = host_speed(device);
  const auto planned = [&](const Degrees& grid) {
    return plan_layout(job, machine(grid.product(), kLatency, device), grid).step;
  };
  const auto ahead = planned({});
  EXPECT_NEAR((ahead.copies + ahead.memory) / (kCopied / link), 1, 0.01);
  job.memory.offload.prefetch = 0;
  EXPECT_NEAR(planned({}).copies / (kCopied / link), 1, 0.01);
  EXPECT_NEAR(planned({.tp = 2}).copies / (kCopied / link / 2), 1, 0.01);
  EXPECT_NEAR(planned({.ring = 2}).copies / (kCopied / link), 1, 0.01);
  job.branches = 2;  // evaluated one after another
  EXPECT_NEAR(planned({}).copies / (2 * kCopied / link), 1, 0.01);
  EXPECT_NEAR(planned({.cfg = 2}).copies / (kCopied / link), 1, 0.01);
  job.branches = 1;
  job.memory.offload.resident = -1;
  EXPECT_EQ(planned({}).copies, 0);
  job.memory.offload.resident = 0;
  job.memory.offload.folder = "pages";  // two ranks read one disk
  EXPECT_NEAR(planned({}).copies / (kCopied / kDiskSpeed), 1, 0.01);
  EXPECT_NEAR(planned({.ring = 2}).copies / (2 * kCopied / kDiskSpeed), 1, 0.01);
  job.memory.offload.transformer = OffloadMode::kModel;  // once a picture
  EXPECT_EQ(planned({}).copies, 0);
}

TEST(PlannedTime, HidesCopiesBehindTheRestOfTheStep) {
  auto device = instant();
  device.link = "pcie4";
  auto job = flux_dev();
  job.memory.offload.transformer = OffloadMode::kBlock;
  const auto step_with = [&](double flops) {
    device.bfloat16_flops = flops;
    return plan_layout(job, machine(1, kBytes, device), {}).step;
  };
  EXPECT_EQ(step_with(1e12).copies, 0);
  const auto fast = step_with(1e15);
  EXPECT_NEAR(fast.total() / (kCopied / host_speed(device)), 1, 0.01);
}

TEST(PlannedTime, CopiesAStagesOwnBlocksForEachPicture) {
  auto device = instant();
  device.link = "pcie4";
  auto job = flux_dev();
  job.memory.offload.transformer = OffloadMode::kBlock;
  job.num_pictures = 2;
  const auto step = plan_layout(job, machine(2, kBytes, device), {.pp = 2}).step;
  // two pictures pass two stages in three ticks; the longer stage has some more than half
  EXPECT_NEAR(step.copies / (3 * kCopied / 2 / host_speed(device)), 1, 0.15);
}

TEST(PlannedTime, OnTheWireIsThatOfRings) {
  const auto job = replicated();
  const double reduced = 76 * kTokens * kHidden * 2;
  EXPECT_NEAR(communication(job, machine(4, kBytes), {.tp = 4})["tp"] / (1.5 * reduced), 1, 1e-9);
  const double traded = kBlocks * 4 * kTokens / 4 * kHidden * 2;
  EXPECT_NEAR(communication(job, machine(4, kBytes), {.ulysses = 4})["ulysses"] / (0.75 * traded),
              1, 1e-9);
  const double passed = kBlocks * 2 * kTokens * kHidden * 2 * 3 / 4;
  EXPECT_NEAR(communication(job, machine(4, kBytes), {.ring = 4})["ring"] / passed, 1, 1e-9);
  EXPECT_NEAR(communication(job, machine(4, kBytes), {.ring = 4})["context"], 3.0 * 1024 * 64 * 2,
              1e-3);
  auto guided = job;
  guided.branches = 2;
  EXPECT_NEAR(communication(guided, machine(2, kBytes), {.cfg = 2})["cfg"], 4096 * 64 * 2, 1e-3);
}

TEST(PlannedTime, OfLatencyGrowsWithTheLogarithmOfRanks) {
  const auto job = replicated();
  EXPECT_NEAR(communication(job, machine(8, kLatency), {.tp = 8})["tp"], 76 * 3, 1e-9);
  EXPECT_NEAR(communication(job, machine(8, kLatency), {.ulysses = 8})["ulysses"], 57 * 2, 1e-9);
  EXPECT_NEAR(communication(job, machine(8, kLatency), {.ring = 8})["ring"], 57 * 7, 1e-9);
  const auto shared = flux_dev();  // adaLN layers, gathered before the steps
  EXPECT_NEAR(communication(shared, machine(8, kLatency), {.tp = 8})["tp"], 76 * 3, 1e-9);
}

TEST(PlannedTime, HidesShiftsBehindAttention) {
  auto device = instant();
  const auto job = flux_dev();
  const LinkSpec link{"link", 1e9, 0};
  const auto exposed = [&](double flops) {
    device.bfloat16_flops = flops;
    return communication(job, machine(2, link, device), {.ring = 2})["ring"];
  };
  const double all = kBlocks * kTokens * kHidden * 2 / 1e9;
  EXPECT_NEAR(exposed(1e30), all, 1e-6);
  EXPECT_NEAR(exposed(1e9), 0, 1e-9);
  // each hop overlaps the attention to half of the keys
  const double attention = kBlocks * 4 * (kTokens / 2) * (kTokens / 2) * kHidden;
  EXPECT_NEAR(exposed(4 * attention / all), all * 3 / 4, 1e-6);
  auto gathered = job;
  gathered.layout.ring_form = RingForm::kGather;
  device.bfloat16_flops = 1e9;
  EXPECT_NEAR(communication(gathered, machine(2, link, device), {.ring = 2})["ring"], all, 1e-6);
}

// A kernel's start counts as often as blocks start kernels, and what the host needs to start them
// where it is more than the device's work.
TEST(PlannedTime, OfGapsIsThatOfKernels) {
  auto device = instant();
  device.gap = 1;
  auto job = flux_dev();
  const auto gaps = [&](const Degrees& grid) {
    return plan_layout(job, machine(grid.product(), kBytes, device), grid).step.gaps;
  };
  constexpr double kOfBlocks = 19 * 16 + 38 * 8, kOfEnds = 2 * 30;
  EXPECT_NEAR(gaps({}), kOfBlocks + kOfEnds, 1e-9);
  EXPECT_NEAR(gaps({.ulysses = 2}), kOfBlocks + 57 * 6 + kOfEnds, 1e-9);
  // two exchanges and a sum, of double blocks one for each side, without gated residuals
  const double summed = 38 * 4 + 38 * 3 - 19 * 2 - 38;
  EXPECT_NEAR(gaps({.tp = 2}), kOfBlocks + summed + kOfEnds, 1e-9);
  job.layout.collectives = Collectives::kNative;  // one exchange
  EXPECT_NEAR(gaps({.tp = 2}), kOfBlocks + summed - 76 + kOfEnds, 1e-9);
  job.batch_size = job.num_pictures = 2;  // in the same kernels
  EXPECT_NEAR(gaps({}), kOfBlocks + kOfEnds, 1e-9);
  job.branches = 2;
  EXPECT_NEAR(gaps({}), 2 * (kOfBlocks + kOfEnds), 1e-9);
  job.memory.quantize = Quantize::kFloat8;
  device.float8_flops = device.bfloat16_flops;
  device.float8_reached = 1;
  // attention's result is quantized, and GELU is a kernel that writes codes; in single blocks it
  // takes the place of two products in parts
  EXPECT_NEAR(gaps({}), 2 * (kOfBlocks + 19 * (2 + 2) - 38 + kOfEnds), 1e-9);

  job = flux_dev();
  job.graphs = Graphs::kOff;
  device.gap = 1e-6;
  EXPECT_NEAR(gaps({}), 6e-6 * (kOfBlocks + kOfEnds), 1e-9);
  device.bfloat16_flops = 1e12;
  EXPECT_NEAR(gaps({}), 1e-6 * (kOfBlocks + kOfEnds), 1e-9);
}

struct Published {
  const char* devices;
  Degrees grid;
  double milliseconds;  // of a step of FLUX.1-dev, 1024x1024
  double error;         // that is allowed
  Quantize quantize = Quantize::kNone;
};

// The table of docs/parallelism.md. A reading of every kernel of the two single Hopper cards gives
// 122 and 124 ms, and 85 and 88 in float8; other figures are others' measurements of their engines.
TEST(PlannedTime, IsNearWhatOthersPublished) {
  const Published all[] = {{"h200", {}, 122, 0.01},
                           {"h100", {}, 124, 0.01},
                           {"h200", {}, 85, 0.02, Quantize::kFloat8},
                           {"h100", {}, 88, 0.02, Quantize::kFloat8},
                           {"h100", {}, 128.85, 0.05},
                           {"h200", {}, 127.6, 0.05},
                           {"2xh200", {.tp = 2}, 83, 0.17},
                           {"rx-7800-xt", {}, 5100, 0.03},
                           {"4xrx-7800-xt", {.tp = 4}, 1840, 0.18},
                           {"4xl20", {.ulysses = 4}, 281, 0.18},
                           {"4xl20", {.ring = 2, .ulysses = 2}, 324, 0.07},
                           {"4xl20", {.ring = 4}, 351, 0.08},
                           {"4xrtx-4090", {.ulysses = 4}, 259, 0.18},
                           {"4xrtx-4090", {.ring = 2, .ulysses = 2}, 322, 0.06},
                           {"4xrtx-4090", {.ring = 4}, 339, 0.20}};
  for (const auto& [devices, grid, milliseconds, error, quantize] : all) {
    auto job = quantize == Quantize::kNone ? replicated() : flux_dev();
    job.memory.quantize = quantize;
    auto there = braid::machine_of(devices);
    for (auto& device : there.devices) device.memory = 1e12;
    const auto predicted = 1e3 * plan_layout(job, there, grid).step.total();
    RecordProperty(std::string(devices) + " " + layout_name(grid), std::to_string(predicted));
    EXPECT_NEAR(predicted / milliseconds, 1, error)
        << devices << " " << layout_name(grid) << " " << predicted;
  }
}

// Products and attention at their own rates; 91, 25 and 6 ms.
TEST(PlannedTime, OfAnH200IsProductsAttentionAndTheRest) {
  const auto step = planned(flux_dev(), "h200", {}).step;
  EXPECT_NEAR(step.compute, 0.091 + 0.025, 0.001);
  EXPECT_NEAR(step.memory + step.gaps, 0.006, 0.001);
  const auto halves = planned(flux_dev(), "2xh200", {.ulysses = 2}).step;
  EXPECT_NEAR(halves.compute, step.compute / 2, 1e-5);
}

}  // namespace braid::planner_time_test
