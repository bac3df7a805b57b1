// Plans for devices that differ: all ranks wait for the slowest, and each must hold its share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "pipeline/planner/planned.h"

namespace braid::planner_devices_test {

using testing::HasSubstr;

Machine machine_of(std::vector<DeviceSpec> devices) {
  const LinkSpec link{"link", 1e10, 0};
  return {.devices = std::move(devices), .link = link, .network = link};
}

DeviceSpec device(double bfloat16, double float32, double memory_speed) {
  return {"some", 1e12, bfloat16, float32, memory_speed, 1, "pcie4"};
}

TEST(MixedDevices, AreAsFastAsTheSlowestInEachRespect) {
  const auto quick = device(4e14, 1e12, 1e11), wide = device(1e14, 3e12, 8e11);
  const auto neither = device(1e14, 1e12, 1e11);
  for (const auto dtype : {at::kBFloat16, at::kFloat}) {
    auto job = named_job("flux1-dev");
    job.dtype = dtype;
    job = surveyed(std::move(job));
    for (const auto& grid : {Degrees{.tp = 2}, Degrees{.ring = 2}, Degrees{.pp = 2}}) {
      const auto step = [&](const std::vector<DeviceSpec>& devices) {
        return plan_layout(job, machine_of(devices), grid).step;
      };
      const auto want = step({neither, neither});
      for (const auto& devices : {std::vector{quick, wide}, std::vector{wide, quick}}) {
        EXPECT_NEAR(step(devices).compute / want.compute, 1, 1e-9) << layout_name(grid);
        EXPECT_NEAR(step(devices).memory / want.memory, 1, 1e-9) << layout_name(grid);
      }
    }
  }
}

TEST(MixedDevices, TalkOverTheSlowestLink) {
  const auto speed = [](const std::string& devices) {
    return link_of(devices_named("", devices)).speed;
  };
  EXPECT_EQ(speed("h100,l4"), speed("2xl4"));
  EXPECT_EQ(speed("l4,h100"), speed("2xl4"));
  EXPECT_EQ(speed("l4,a100,h100"), speed("l4"));
  // consumer cards reach each other through host memory, data centre cards directly
  EXPECT_EQ(speed("2xrtx-4090"), speed("2xl4") / 2);
  EXPECT_EQ(speed("l4,rtx-4090"), speed("2xrtx-4090"));
}

// Wherever it is among the ranks, a device that is too small for its share rules a layout out.
TEST(MixedDevices, FitIfEveryOneHoldsItsShare) {
  const auto job = flux_dev();
  for (const auto& grid :
       {Degrees{.ring = 4}, Degrees{.ulysses = 4}, Degrees{.tp = 4}, Degrees{.ring = 2, .tp = 2}}) {
    auto devices = devices_named("", "4xh100");
    EXPECT_EQ(plan_layout(job, braid::machine_of("4xh100"), grid).reason, "");
    for (auto& small : devices) {
      const auto memory = std::exchange(small.memory, 4e9);
      EXPECT_THAT(plan_layout(job, machine_of(devices), grid).reason,
                  HasSubstr("its device has 3.80 GB to use"))
          << layout_name(grid) << " rank " << &small - devices.data();
      small.memory = memory;
    }
  }
}

// A GPU sums products of codes in a tensor of its own. In a single block's first layer these live
// beside each other: the tokens, their norm and its codes; 3 C + 4 C sums of 4 bytes; the result.
TEST(ProductsOfCodes, HaveRoomForTheirSums) {
  auto job = flux_dev();
  job.memory.quantize = Quantize::kInt8Dynamic;
  const auto whole = whole_transformer(job.shape());
  constexpr std::int64_t kHidden = 3072, kTokens = 4096 + 512, kWide = 7 * kHidden;
  const auto bytes = predict_bytes(job, {}, 0, whole);
  EXPECT_GE(bytes.activations + bytes.keys_values,
            kTokens * (2 * kHidden + 2 * kHidden + kHidden + 4 * kWide + 2 * kWide));
  const auto half = predict_bytes(job, {.tp = 2}, 0, whole);
  EXPECT_GE(half.activations + half.keys_values,
            kTokens * (5 * kHidden + (4 * kWide + 2 * kWide) / 2));
  job.memory.quantize = Quantize::kInt8;
  EXPECT_GT(bytes.activations, predict_bytes(job, {}, 0, whole).activations);
}

}  // namespace braid::planner_devices_test
