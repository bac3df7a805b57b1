// Shares of devices that are not alike: by speed, as asked, and what they cost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "message_of.h"
#include "pipeline/devices/host.h"
#include "pipeline/planner/fastest.h"
#include "pipeline/planner/planned.h"

namespace braid::by_speed_test {

using testing::ElementsAre;
using testing::HasSubstr;

const PlannedLayout* find(const std::vector<PlannedLayout>& layouts, const std::string& name) {
  for (const auto& layout : layouts)
    if (layout_name(layout.grid) == name) return &layout;
  return nullptr;
}

// A rank's work for FLUX.1-dev scales with its heads: 24, of which 3:2 are 14 and 10.
PlanJob flux_dev_in_eight_bits() {
  auto job = flux_dev();
  job.memory.quantize = job.memory.quantize_text = Quantize::kInt8;
  return job;
}

TEST(SharesBySpeed, AreEighthsOfTheFastest) {
  const auto of_tp = [](const std::vector<double>& speeds) {
    return shares_by_speed({.tp = int(speeds.size())}, speeds).tp;
  };
  EXPECT_THAT(of_tp({100, 50}), ElementsAre(8, 4));
  EXPECT_THAT(of_tp({50, 100, 80}), ElementsAre(4, 8, 6));  // 6.4 eighths
  EXPECT_THAT(of_tp({1000, 1}), ElementsAre(8, 1));         // none gets nothing
  EXPECT_TRUE(of_tp({100, 95}).empty());                    // 7.6: alike
}

// An h200 reaches 43 times what an rtx-3060 does in large products.
TEST(SharesBySpeed, OfDataSheetsAreFinerWhereOneIsFarSlower) {
  EXPECT_THAT(shares_by_speed({.tp = 2}, machine_of("rtx-5090,rtx-4090")).tp, ElementsAre(8, 6));
  const auto far = shares_by_speed({.tp = 2}, machine_of("h200,rtx-3060")).tp;
  ASSERT_EQ(far.size(), 2u);
  EXPECT_GT(far[0], 40 * far[1]);
  EXPECT_LT(far[0], 45 * far[1]);
  const auto three = shares_by_speed({.tp = 3}, machine_of("h200,h100,rtx-3060")).tp;
  EXPECT_EQ(three[0], three[1]) << "as fast, in finer steps, too";
}

// 23 of 24 heads are the most that the first can have.
TEST(Shares, BySpeedAreNoSlowerThanTheBestThatIsAskedFor) {
  const auto machine = machine_of("h200,rtx-3060");
  auto job = surveyed(flux_dev_in_eight_bits());
  const auto layouts = plan_layouts(job, machine, Division::kAlsoBySpeed);
  for (const auto& [axis, grid] :
       {std::pair{"tp 2 (", Degrees{.tp = 2, .shares = {.tp = {23, 1}}}},
        std::pair{"pp 2 (", Degrees{.pp = 2, .shares = {.pp = {56, 1}}}}}) {
    const auto best = plan_layout(job, machine, grid).seconds_per_picture;
    const auto it = std::ranges::find_if(layouts, [axis = axis](const PlannedLayout& l) {
      return layout_name(l.grid).starts_with(axis);
    });
    ASSERT_NE(it, layouts.end());
    EXPECT_LE(it->seconds_per_picture, 1.01 * best) << axis;
  }
  const auto alone = faster_alone(job, machine, layouts);
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->device, "h200");
  EXPECT_NEAR(alone->seconds, plan_layout(job, machine_of("h200"), {}).seconds_per_picture, 1e-9);
  const auto pair = machine_of("2xh200");
  EXPECT_FALSE(faster_alone(job, pair, plan_layouts(job, pair)));
  EXPECT_FALSE(faster_alone(job, machine_of("h200"), plan_layouts(job, machine_of("h200"))));
}

// A thousandth of the fastest is no head: the slowest takes an eighth, as every rank needs one.
TEST(Shares, BySpeedLeaveNoRankWithoutAHead) {
  auto machine = machine_of("2xh200");
  machine.devices[1].bfloat16_flops /= 900;
  const auto layouts = plan_layouts(flux_dev_in_eight_bits(), machine, Division::kAlsoBySpeed);
  EXPECT_TRUE(std::ranges::any_of(layouts, [](const PlannedLayout& l) {
    return l.fits() && l.grid.tp == 2 && !l.grid.shares.tp.empty();
  }));
}

TEST(SharesBySpeed, OfAnAxisAreThoseOfItsSlowestRanks) {
  const auto shares = shares_by_speed({.dp = 2, .tp = 2}, {8, 4, 8, 2});
  EXPECT_THAT(shares.tp, ElementsAre(8, 2));
  EXPECT_THAT(shares.dp, ElementsAre(8, 4));
  EXPECT_TRUE(shares.ring.empty() && shares.ulysses.empty() && shares.pp.empty());
  const auto guided = shares_by_speed({.cfg = 2, .ring = 2}, {8, 4, 4, 8});
  EXPECT_EQ(guided, AxisShares{}) << "branches are whole, and both places have a slow rank";
}

TEST(Shares, AreListedBySpeedBesideAlikeOnesWhereDevicesDiffer) {
  const auto job = flux_dev_in_eight_bits();
  const auto layouts = plan_layouts(job, machine_of("rtx-5090,rtx-4090"), Division::kAlsoBySpeed);
  ASSERT_TRUE(find(layouts, "tp 2"));
  ASSERT_TRUE(find(layouts, "tp 2 (8:6)"));
  EXPECT_LT(find(layouts, "tp 2 (8:6)")->step.total(), find(layouts, "tp 2")->step.total());
  const auto alike = plan_layouts(job, machine_of("2xrtx-5090"), Division::kAlsoBySpeed);
  EXPECT_FALSE(find(alike, "tp 2 (8:8)"));
}

TEST(Shares, ThatAreAskedForTakeThePlaceOfOthers) {
  auto job = flux_dev_in_eight_bits();
  job.layout.shares = {.tp = {3, 2}};
  const auto layouts = plan_layouts(job, machine_of("rtx-5090,rtx-4090"), Division::kAlsoBySpeed);
  EXPECT_TRUE(find(layouts, "tp 2 (3:2)"));
  EXPECT_FALSE(find(layouts, "tp 2") || find(layouts, "tp 2 (8:6)"));
  EXPECT_TRUE(find(layouts, "ring 2") && find(layouts, "ring 2 (8:6)"));
}

// Bytes of weights and FLOPs of products follow the heads. Other tensors are not cut.
TEST(Shares, GiveEachRankItsPartOfBytesAndTime) {
  auto job = flux_dev();
  const auto machine = machine_of("2xh100");
  const auto alike = plan_layout(job, machine, {.tp = 2});
  const auto planned = plan_layout(job, machine, {.tp = 2, .shares = {.tp = {3, 2}}});
  EXPECT_NEAR(double(planned.first_rank.transformer) / double(alike.first_rank.transformer),
              14.0 / 12, 0.01);
  EXPECT_NEAR(planned.step.compute / alike.step.compute, 14.0 / 12, 1e-9);
  EXPECT_EQ(planned.traffic, alike.traffic) << "sums of whole tokens";
}

// The first rank draws four of six pictures, the other two.
TEST(Shares, OfPicturesAreThoseOfARound) {
  auto job = flux_dev();
  job.num_pictures = 6;
  job.batch_size = 3;
  auto machine = machine_of("2xh100");
  auto& slow = machine.devices[1];
  slow.bfloat16_flops /= 2;
  slow.memory_speed /= 2;
  const auto planned = plan_layout(job, machine, {.dp = 2, .shares = {.dp = {2, 1}}});
  auto alone = job;
  alone.num_pictures = alone.batch_size = 4;
  const auto first = plan_layout(alone, machine_of("h100"), {});
  EXPECT_EQ(planned.first_rank.activations, first.first_rank.activations);
  EXPECT_NEAR(planned.step.compute, first.step.compute, 1e-9);
  EXPECT_NEAR(planned.seconds_per_picture * 6 / (job.evaluations() * planned.step.total()), 1,
              1e-9);
  EXPECT_LT(planned.largest_other.activations, planned.first_rank.activations);
}

TEST(DeviceOfCard, IsOneWhoseNameIsKnownToTheLetter) {
  const auto named = [](const std::string& name, double bytes) {
    const auto device = device_of_card(name, name.empty() ? "gfx1101" : "sm_89", bytes);
    return device ? device->name : "";
  };
  EXPECT_EQ(named("NVIDIA GeForce RTX 4090", 25.4e9), "rtx-4090");
  EXPECT_EQ(named("NVIDIA GeForce RTX 4090 Laptop GPU", 17e9), "");
  EXPECT_EQ(named("NVIDIA H100 80GB HBM3", 85.0e9), "h100");
  EXPECT_EQ(named("NVIDIA H100 80GB HBM3", 10.9e9), "") << "a part of one";
  EXPECT_EQ(named("NVIDIA H100 PCIe", 85.0e9), "") << "has no NVLink";
  EXPECT_EQ(named("", 17.16e9), "rx-7800-xt");
  EXPECT_EQ(named("", 12.9e9), "") << "an RX 7700 XT";
}

// Four layouts of two cards lack memory; one each has too few pictures and branches.
TEST(FastestLayout, SaysTheMostFrequentReasonIfNothingFits) {
  EXPECT_THAT(message_of([] {
                fastest_layout(flux_dev(), {"cuda:0", "cuda:1"},
                               described_host(devices_named("", "2xrtx-4070")));
              }),
              HasSubstr(": not enough memory: "));  // 12 GB have no room for half of the model
}

class Splits : public testing::Test {
 protected:
  static std::optional<SlowerSplit> slower(const PlanJob& job, const std::string& devices,
                                           Degrees grid) {
    const auto specs = devices_named("", devices);
    RankPlaces places{.grid = std::move(grid), .devices = {}};
    for (std::size_t i = 0; i < specs.size(); ++i) places.devices.push_back(text_of("cuda:", i));
    return slower_split(job, places, described_host(specs));
  }
};

// Alike, both cards take as long as the slower one with half of the work.
TEST_F(Splits, ThatAreSlowerThanTheirFastestCardAreFound) {
  const auto job = flux_dev_in_eight_bits();
  const auto split = slower(job, "rtx-3090,rtx-5090", {.tp = 2});
  ASSERT_TRUE(split);
  EXPECT_EQ(split->device, "cuda:1");
  EXPECT_GT(split->split, split->alone);
  EXPECT_NEAR(split->alone, planned(job, "rtx-5090", {}).seconds_per_picture, 1e-9);
  EXPECT_NEAR(split->split, planned(job, "rtx-3090,rtx-5090", {.tp = 2}).seconds_per_picture, 1e-9);
  EXPECT_EQ(split->link.name, "pcie4");
}

TEST_F(Splits, ThatPayAreNot) {
  const auto job = flux_dev_in_eight_bits();
  EXPECT_FALSE(slower(job, "2xrtx-4090", {.tp = 2}));
  auto three = job;
  three.num_pictures = 3;
  three.batch_size = 2;
  EXPECT_TRUE(slower(three, "rtx-3090,rtx-4090", {.dp = 2}));
  EXPECT_FALSE(slower(three, "rtx-3090,rtx-4090", {.dp = 2, .shares = {.dp = {1, 2}}}));
}

TEST_F(Splits, ThatNoSingleCardHasRoomForAreNot) {
  EXPECT_FALSE(slower(flux_dev(), "rtx-3090,rtx-5090", {.tp = 2}));
}

TEST_F(Splits, OfOneDeviceOrOfUnknownOnesAreNotJudged) {
  const auto job = flux_dev_in_eight_bits();
  const auto host = described_host(devices_named("", "rtx-3090,rtx-5090"));
  RankPlaces places{.grid = {.tp = 2}, .devices = {"cuda:0", "cuda:0"}};
  EXPECT_FALSE(slower_split(job, places, host));
  places.devices = {"cuda:0", "cuda:1"};
  EXPECT_TRUE(slower_split(job, places, host));
  places.are_threads = false;
  EXPECT_FALSE(slower_split(job, places, host));
  places.are_threads = true;
  auto unknown = host;
  unknown.card = [](at::Device) { return std::optional<DeviceSpec>(); };
  EXPECT_FALSE(slower_split(job, places, unknown));
}

}  // namespace braid::by_speed_test
