// Which device a rank gets, and the layout chosen if none is asked for.
#include "pipeline/devices/devices.h"
#include "message_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "pipeline/deployment/degrees.h"
#include "pipeline/engine/engine.h"

namespace braid::devices_test {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names(std::vector<std::string> entries) {
  return device_names({.model = {}, .devices = std::move(entries)});
}

TEST(DeviceNames, TakeRangesApart) {
  EXPECT_THAT(names({}), ElementsAre("cpu"));
  EXPECT_THAT(names({"cuda:0-2", "cpu"}), ElementsAre("cuda:0", "cuda:1", "cuda:2", "cpu"));
  EXPECT_THAT(names({"cuda:3-3", "cuda:0", "cuda:0"}), ElementsAre("cuda:3", "cuda:0", "cuda:0"));
  for (const auto* const odd : {"cuda:2-1", "cuda:-1", "cuda:1-", "cuda:a-b", "0-3", "cuda:0-9999"})
    EXPECT_THAT(names({odd}), ElementsAre(odd)) << "left for find_device to refuse";
}

TEST(DeviceNames, OfRanksAndOfAHostSpellOutEachProcesssGpu) {
  const PipelineOptions one{.model = {}, .device = "cuda"},
      several{.model = {}, .devices = {"cuda:2-3"}};
  const std::optional<Launch> launch = Launch{.rank = 1, .size = 4, .local_rank = 1};
  EXPECT_THAT(names_of_ranks(one, 2), ElementsAre("cuda", "cuda"));
  EXPECT_THAT(names_of_ranks(several, 2), ElementsAre("cuda:2", "cuda:3"));
  EXPECT_THAT(names_by_rank(one, 2, {}), ElementsAre("cuda", "cuda"));
  EXPECT_THAT(names_by_rank(one, 3, launch), ElementsAre("cuda:0", "cuda:1", "cuda:2"));
  EXPECT_THAT(names_by_rank(several, 2, launch), ElementsAre("cuda:2", "cuda:3"));
  EXPECT_THAT(names_on_host(one, 2, {}), ElementsAre("cuda"));
  EXPECT_THAT(names_on_host(one, 2, launch), ElementsAre("cuda:0", "cuda:1")) << "of 4 ranks";
  EXPECT_THAT(names_on_host(several, 8, launch), ElementsAre("cuda:2", "cuda:3"));
}

TEST(Sharers, AreTheRanksOfOneDevice) {
  const std::vector<std::string> names = {"cuda:0", "cpu", "cuda:0", "cuda:0"};
  EXPECT_EQ(sharers_of(names, 1), 1);
  EXPECT_EQ(sharers_of(names, 2), 3);
  EXPECT_EQ(sharers_of(std::vector<at::Device>{at::kCPU, at::kCPU}, 0), 2);
}

// A T4, with a build for later GPUs; and a GPU that was not told to claim to be a gfx1030.
TEST(Devices, AreRefusedWhereABuildHasNoKernelsForThem) {
  EXPECT_THAT(message_of([] { require_kernels("cuda:1", "sm_75", "80-real,90-real"); }),
              AllOf(HasSubstr("cuda:1 is of architecture sm_75"),
                    HasSubstr("no kernels: it has some for 80-real,90-real"),
                    HasSubstr("-DCMAKE_CUDA_ARCHITECTURES=75,")));
  EXPECT_THAT(message_of([] { require_kernels("cuda", "gfx1031", "gfx942,gfx1030"); }),
              HasSubstr("-DCMAKE_HIP_ARCHITECTURES=gfx1031,"));
  EXPECT_EQ(message_of([] { require_kernels("cuda", "sm_90", "80-real,90-real"); }), "");
  EXPECT_EQ(message_of([] { require_kernels("cuda", "sm_90", ""); }), "");
}

TEST(Devices, AreOneARankOrOneForAll) {
  const auto devices = [](std::vector<std::string> entries, const Degrees& degrees) {
    return devices_of({.model = {}, .devices = std::move(entries)}, degrees);
  };
  const at::Device cpu(at::kCPU);
  EXPECT_THAT(devices({"cpu"}, {.tp = 3}), ElementsAre(cpu, cpu, cpu));
  EXPECT_THAT(devices({"cpu", "cpu"}, {.ring = 2}), ElementsAre(cpu, cpu));
  EXPECT_THAT(message_of([&] {
                devices({"cpu", "cpu", "cpu"}, {.cfg = 2, .pp = 2});
              }),
              HasSubstr("dp 1 x cfg 2 x pp 2 x ring 1 x ulysses 1 x tp 1 = 4, but there are 3"));
  EXPECT_THAT(message_of([&] { devices({"cpu", "gpu"}, {.ring = 2}); }), HasSubstr("it is 'gpu'"));
  EXPECT_THAT(message_of([&] { devices({"cuda:2-1"}, {}); }), HasSubstr("it is 'cuda:2-1'"));
}

TEST(Devices, OfAPipelineAreCheckedBeforeItLoads) {
  const PipelineOptions options{.model = BRAID_SOURCE_DIR "/models/demo",
                                .devices = {"cpu", "cpu", "cpu"},
                                .layout = {.tp = 2}};
  EXPECT_THAT(message_of([&] { Engine(options, {}); }), HasSubstr("= 2, but there are 3 devices"));
}

TEST(FreeMemory, OfTheComputerIsSharedAmongItsRanks) {
  const auto all = free_memory(at::kCPU, 1), quarter = free_memory(at::kCPU, 4);
  EXPECT_TRUE(all.is_host);
  EXPECT_GT(all.free_bytes, 1 << 20);
  EXPECT_LT(quarter.free_bytes, all.free_bytes / 2);
}

constexpr int kGuided = 2, kPlain = 1;  // branches

TEST(ChooseLayout, PutsTheBranchesOfGuidanceOnDifferentRanks) {
  const auto two = choose_layout({}, 2, kGuided), six = choose_layout({}, 6, kGuided);
  EXPECT_EQ(degrees_of(two), Degrees{.cfg = 2});
  EXPECT_EQ(degrees_of(six), (Degrees{.cfg = 2, .ulysses = 3}));
}

TEST(ChooseLayout, LeavesAloneWhatWasAskedFor) {
  EXPECT_EQ(degrees_of(choose_layout({.tp = 2}, 2, kGuided)), Degrees{.tp = 2});
  EXPECT_EQ(degrees_of(choose_layout({}, 1, kGuided)), Degrees{});
  EXPECT_EQ(degrees_of(choose_layout({.cfg = 2}, 1, kGuided)), Degrees{.cfg = 2});
}

TEST(ChooseLayout, SaysWhatCouldBeAskedFor) {
  const auto wants =
      HasSubstr("but there are 2 ranks: ask for degrees that multiply to 2; cfg is 2");
  EXPECT_THAT(message_of([] { choose_layout({}, 2, kPlain); }), wants);
  EXPECT_THAT(message_of([] { choose_layout({}, 3, kGuided); }), HasSubstr("multiply to 3"));
}

TEST(ChooseLayout, RefusesGuidanceParallelismWithoutTwoBranches) {
  EXPECT_THAT(message_of([] { choose_layout({.cfg = 2}, 1, kPlain); }),
              HasSubstr("give a negative prompt and a true guidance scale above 1; guidance that a "
                        "model was distilled for is a single branch"));
  EXPECT_THAT(message_of([] { choose_layout({.cfg = 3}, 3, kGuided); }), HasSubstr("there are 2"));
}

}  // namespace braid::devices_test
