// Which preset a device has.
#include "pipeline/memory/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "braid/error.h"
#include "pipeline/planner/memory_plan.h"
#include "pipeline/planner/named_job.h"

namespace braid::presets_test {

struct Card {
  const char* name;  // as sold
  const char* architecture;
  double bytes;  // as reported by its driver
  const char* preset;
};

// Names, architectures and memory from the makers' data sheets.
const Card kCards[] = {
    {"RX 7900 XTX", "gfx1100", 25.75e9, "rx-7900-xtx"},
    {"RX 7900 XT", "gfx1100", 21.46e9, "rx-7900-xt"},
    {"RX 7900 GRE", "gfx1100", 17.16e9, "rx-7900-xt"},
    {"RX 7800 XT", "gfx1101", 17.16e9, "rx-7800-xt"},
    {"RX 7700 XT", "gfx1101", 12.87e9, "rx-7800-xt"},
    {"RX 7600", "gfx1102", 8.57e9, "rx-7800-xt"},
    {"Radeon AI PRO R9700", "gfx1201", 34.2e9, "r9700"},
    {"RX 9070 XT", "gfx1201", 17.1e9, "rx-9070-xt"},
    {"RX 9060 XT", "gfx1200", 17.1e9, "rx-9070-xt"},
    {"RX 9060 XT 8 GB", "gfx1200", 8.57e9, "rx-9070-xt"},
    {"Radeon 8060S", "gfx1151", 103e9, "ryzen-ai-max"},
    {"Radeon 8060S, a quarter", "gfx1151", 25.7e9, "ryzen-ai"},
    {"Radeon 890M", "gfx1150", 8.57e9, "ryzen-ai"},
    {"Radeon 840M", "gfx1152", 8.57e9, "ryzen-ai"},
    {"RX 6800", "gfx1030", 17.16e9, "rx-6800"},
    {"MI300X", "gfx942", 205.8e9, "mi300x"},
    {"A100 80 GB", "sm_80", 84.97e9, "a100"},
    {"A100 40 GB", "sm_80", 42.4e9, "a100-40gb"},
    {"A100, a seventh", "sm_80", 10.2e9, "a100-slice"},
    {"RTX A6000", "sm_86", 50.9e9, "a6000"},
    {"RTX 3090", "sm_86", 25.4e9, "rtx-3090"},
    {"RTX 3060", "sm_86", 12.6e9, "rtx-3060"},
    {"L40S", "sm_89", 47.7e9, "l40s"},
    {"RTX 4090", "sm_89", 25.4e9, "rtx-4090"},
    {"RTX 4080", "sm_89", 16.9e9, "rtx-4080"},
    {"RTX 4060", "sm_89", 8.2e9, "rtx-4060"},
    {"H100", "sm_90", 84.9e9, "h100"},
    {"H200", "sm_90", 150e9, "h100"},
    {"H100, a seventh", "sm_90", 10.5e9, "h100-slice"},
    {"B200", "sm_100", 191e9, "gpu-48gb"},
    {"B300", "sm_103", 287e9, "gpu-48gb"},
    {"RTX PRO 6000", "sm_120", 101e9, "gpu-48gb"},
    {"RTX 5090", "sm_120", 33.7e9, "gpu-24gb"},
    {"RTX 5080", "sm_120", 16.6e9, "gpu-16gb"},
    {"RTX 5070", "sm_120", 12.4e9, "gpu-6gb"},
    {"RTX 5060", "sm_120", 8.2e9, "gpu-6gb"},
    {"GB10", "sm_121", 128e9, "gpu-48gb"},
    {"MI250, one of its two", "gfx90a", 68.7e9, "gpu-48gb"},
    {"MI350X", "gfx950", 309e9, "gpu-48gb"},
};

TEST(Presets, AreFoundByArchitectureAndMemory) {
  for (const auto& card : kCards) {
    const auto* const preset = preset_for(card.architecture, card.bytes);
    ASSERT_NE(preset, nullptr) << card.name;
    EXPECT_EQ(preset->name, card.preset) << card.name;
  }
}

TEST(Presets, AreNoneForGpusThatAreTooSmallOrUnknown) {
  EXPECT_EQ(preset_for("gfx1036", 0.5e9), nullptr);
  EXPECT_EQ(preset_for("sm_75", 4.2e9), nullptr);
  EXPECT_EQ(preset_for("", 1e12), nullptr);
}

// Weights keep the files' dtype: unless 8 bits are asked for, a picture must not depend on the
// card.
TEST(Presets, ThatNobodyNamedOffloadWhatACardHasNoRoomFor) {
  auto job = surveyed(named_job("flux1-dev"));
  for (const auto& card : kCards) {
    job.memory = {.budget = implied_budget(card.bytes)};
    job.is_budget_implied = true;
    const auto made = plan_memory(job, {.grid = {}, .devices = {"cuda:0"}});
    const auto& o = made.memory.offload;
    EXPECT_LE(made.device_peak, card.bytes - 1e9) << card.name;
    EXPECT_EQ(made.memory.quantize, Quantize::kNone) << card.name;
    EXPECT_EQ(made.memory.quantize_text, Quantize::kNone) << card.name;
    EXPECT_EQ(made.tiling, VaeTiling::kAuto) << card.name;
    const bool is_offloaded = o.transformer != OffloadMode::kNone || o.text != OffloadMode::kNone;
    EXPECT_EQ(is_offloaded, card.bytes - 1e9 < 33.6e9) << card.name;  // of all weights
  }
}

TEST(ImpliedBudget, IsWhatIsLeftOfTheGpuAndOfWhatIsFree) {
  const auto budget = [](double bytes, std::optional<double> free = {}) {
    return double(implied_budget(bytes, free).device) / 1e9;
  };
  EXPECT_NEAR(budget(24e9), 23, 1e-6);
  // the runtime's context is already there, and takes part of what is not free
  EXPECT_NEAR(budget(24e9, 23.5e9), 23, 1e-6);
  EXPECT_NEAR(budget(24e9, 22.1e9), 21.6, 1e-6);  // a desktop
  EXPECT_NEAR(budget(24e9, 24e9), 23, 1e-6);      // a context to come
  EXPECT_GT(budget(24e9, 1e8), 0);
}

// An 8 GB card beneath a desktop: what fits the card alone would run out of memory.
TEST(ImpliedBudget, OffloadsMoreBesideADesktop) {
  const auto job = surveyed(named_job("flux1-dev"));
  const auto peak = [&](std::optional<double> free) {
    auto here = job;
    here.memory.budget = implied_budget(8.59e9, free);
    return double(plan_memory(here, {.grid = {}, .devices = {"cuda:0"}}).device_peak);
  };
  EXPECT_GT(peak({}), 6.2e9);
  EXPECT_LE(peak(6.7e9), 6.2e9);
}

TEST(Presets, ThatNobodyNamedRefuseNothing) {
  auto job = surveyed(named_job("flux1-dev"));
  job.width = job.height = 2048;  // tiles would fit, but change it
  job.memory = {.budget = implied_budget(4e9)};
  job.is_budget_implied = true;
  const auto made = plan_memory(job, {.grid = {}, .devices = {"cuda:0"}});
  EXPECT_EQ(made.memory.offload.transformer, OffloadMode::kLeaf);
  EXPECT_EQ(made.tiling, VaeTiling::kAuto);
  EXPECT_GT(made.device_peak, 3e9);
}

// Weights that stay on the device, from the sizes of FLUX.1's parts (README, "Where memory is
// short").
double bytes_on_device(const Memory& m) {
  const bool is_int8 = m.quantize == Quantize::kInt8 && m.quantize_text == Quantize::kInt8;
  switch (m.offload.transformer) {
    case OffloadMode::kNone:
      return is_int8 ? 16.9e9 : 33.6e9;
    case OffloadMode::kModel:
      return is_int8 ? 11.9e9 : 23.8e9;
    default:
      return is_int8 ? 1.1e9 : 1.8e9;
  }
}

TEST(Presets, LeaveRoomForAStepAndTheDecoder) {
  for (const auto& card : kCards) {
    const auto& memory = preset_for(card.architecture, card.bytes)->memory;
    EXPECT_LE(bytes_on_device(memory) + 3e9, card.bytes) << card.name;
  }
}

TEST(Presets, KeepEveryNumberWhereAllOfItFits) {
  for (const auto* const name : {"mi300x", "h100", "a100", "a6000", "l40s"}) {
    const auto& memory = preset_named(name).memory;
    EXPECT_EQ(memory.quantize, Quantize::kNone) << name;
    EXPECT_EQ(memory.offload.transformer, OffloadMode::kNone) << name;
  }
}

TEST(Presets, AreCalledDifferently) {
  std::set<std::string> names;
  for (const auto& preset : known_presets()) EXPECT_TRUE(names.insert(preset.name).second);
  EXPECT_FALSE(names.contains("auto") || names.contains("none"));
}

TEST(Presets, ThatAreUnknownAreAnsweredWithAllThatAreKnown) {
  EXPECT_EQ(preset_named("rx-7800-xt-lowram").memory.offload.pin, Pin::kOnTheFly);
  try {
    preset_named("rtx-9090");
    ADD_FAILURE() << "not refused";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("there is no preset 'rtx-9090'"));
    for (const auto& preset : known_presets())
      EXPECT_THAT(error.what(), testing::HasSubstr(preset.name));
  }
}

}  // namespace braid::presets_test
