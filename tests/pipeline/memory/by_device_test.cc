// Presets and implied budgets, together with settings that are stated.
#include "pipeline/memory/by_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "message_of.h"

namespace braid::by_device_test {

using testing::HasSubstr;

const Preset kPreset{"made",
                     {},
                     0,
                     {.quantize = Quantize::kInt8,
                      .quantize_text = Quantize::kInt8,
                      .offload = {.transformer = OffloadMode::kBlock,
                                  .text = OffloadMode::kBlock,
                                  .blocks = 4,
                                  .prefetch = 2,
                                  .resident = 3,
                                  .residency = Residency::kLeading,
                                  .pin = Pin::kOnTheFly}},
                     "for a test"};

std::string refusal(const std::string& name, const std::optional<Gpu>& gpu) {
  return message_of([&] { (void)preset_of(name, "cuda:1", gpu); });
}

TEST(MemoryByDevice, TakesAPresetsSettings) {
  const auto m = with_preset(kPreset, {}, {});
  EXPECT_EQ(m.quantize, Quantize::kInt8);
  EXPECT_EQ(m.quantize_text, Quantize::kInt8);
  EXPECT_EQ(m.offload.transformer, OffloadMode::kBlock);
  EXPECT_EQ(m.offload.text, OffloadMode::kBlock);
  EXPECT_EQ(m.offload.vae, OffloadMode::kNone);
  EXPECT_EQ(m.offload.blocks, 4);
  EXPECT_EQ(m.offload.prefetch, 2);
  EXPECT_EQ(m.offload.resident, 3);
  EXPECT_EQ(m.offload.residency, Residency::kLeading);
  EXPECT_EQ(m.offload.pin, Pin::kOnTheFly);
}

// Even if what is stated is the default without a preset.
TEST(MemoryByDevice, LetsStatedSettingsWinOverAPreset) {
  const Memory asked;
  EXPECT_EQ(with_preset(kPreset, asked, {.quantize = true}).quantize, Quantize::kNone);
  EXPECT_EQ(with_preset(kPreset, asked, {.quantize = true}).quantize_text, Quantize::kInt8);
  EXPECT_EQ(with_preset(kPreset, asked, {.quantize_text = true}).quantize_text, Quantize::kNone);
  const auto kept = with_preset(kPreset, asked, {.transformer = true, .text = true}).offload;
  EXPECT_EQ(kept.transformer, OffloadMode::kNone);
  EXPECT_EQ(kept.text, OffloadMode::kNone);
  const auto text = with_preset(kPreset, asked, {.text = true}).offload;
  EXPECT_EQ(text.transformer, OffloadMode::kBlock);
  EXPECT_EQ(text.text, OffloadMode::kNone);
  EXPECT_EQ(with_preset(kPreset, asked, {.blocks = true}).offload.blocks, 1);
  EXPECT_EQ(with_preset(kPreset, asked, {.prefetch = true}).offload.prefetch, 1);
  EXPECT_EQ(with_preset(kPreset, asked, {.resident = true}).offload.resident, 0);
  EXPECT_EQ(with_preset(kPreset, asked, {.residency = true}).offload.residency,
            Residency::kStrided);
  EXPECT_EQ(with_preset(kPreset, asked, {.pin = true}).offload.pin, Pin::kAlways);
}

TEST(MemoryByDevice, KeepsWhatAPresetDoesNotSay) {
  const Memory asked{.keep_dense = {"img_in"}, .offload = {.folder = "pages"}};
  const auto m = with_preset(kPreset, asked, {});
  EXPECT_EQ(m.keep_dense, asked.keep_dense);
  EXPECT_EQ(m.offload.folder, "pages");
}

TEST(MemoryByDevice, FindsTheDevicesOwnPreset) {
  const auto* const found = preset_of("auto", "cuda:1", Gpu{"gfx1101", 17'163'091'968});
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->name, "rx-7800-xt");
  EXPECT_EQ(preset_of("none", "cuda", Gpu{"gfx1101", 1}), nullptr);
  EXPECT_EQ(preset_of("", "cuda", Gpu{"gfx1101", 1}), nullptr);
  EXPECT_EQ(preset_of("h100", "cpu", {})->name, "h100");
  EXPECT_THAT(refusal("auto", {}), HasSubstr("the device is cuda:1"));
  EXPECT_THAT(refusal("auto", Gpu{"gfx1036", 536'870'912}),
              HasSubstr("has nothing for cuda:1, a gfx1036 of 537 MB"));
}

// A host of an RX 7900 XTX and an RX 7800 XT.
Host two_cards() {
  return {.gpus = [] {
    return std::vector<Gpu>{{"gfx1100", 25'753'026'560}, {"gfx1101", 17'163'091'968}};
  }};
}

MemoryByDevice chosen(PipelineOptions options, const StatedMemory& stated = {},
                      const Host& host = two_cards()) {
  options.memory.fit = Fit::kAuto;
  return memory_by_device(options, stated, host);
}

TEST(MemoryByDevice, ImpliesABudgetWhereNothingSaysWhereWeightsGo) {
  const PipelineOptions options{.model = "x", .device = "cuda"};
  const auto choice = chosen(options);
  EXPECT_TRUE(choice.is_budget_implied);
  EXPECT_EQ(choice.memory.budget.device, 24'753'026'560);
  EXPECT_EQ(choice.memory.offload.transformer, OffloadMode::kNone);
  EXPECT_FALSE(chosen(options, {.transformer = true}).memory.budget.is_set());
  auto with_budget = options;
  with_budget.memory.budget.host = 1'000'000'000;
  EXPECT_FALSE(chosen(with_budget).is_budget_implied);
  auto without = options;
  without.memory.preset = "none";
  EXPECT_FALSE(chosen(without).memory.budget.is_set());
  EXPECT_FALSE(memory_by_device(options, {}, two_cards()).memory.budget.is_set());  // as asked
}

// What other programs hold counts, such as a desktop.
TEST(MemoryByDevice, ImpliesNoMoreThanIsFree) {
  auto host = two_cards();
  host.free_bytes = [](const std::string& device) -> std::optional<double> {
    return device == "cuda" ? 12e9 : 25e9;
  };
  const PipelineOptions options{.model = "x", .device = "cuda"};
  EXPECT_EQ(chosen(options, {}, host).memory.budget.device,
            implied_budget(25'753'026'560, 12e9).device);
}

// hipBLASLt has no such products for RDNA: the run would fail in its first step.
TEST(MemoryByDevice, RefusesProductsThatAGpuLacks) {
  PipelineOptions options{.model = "x", .devices = {"cuda:0-1"}};
  for (auto* const form : {&options.memory.quantize, &options.memory.quantize_text}) {
    *form = Quantize::kInt8Dynamic;
    for (const auto* const preset : {"", "auto", "none"}) {
      options.memory.preset = preset;
      EXPECT_THAT(message_of([&] { (void)chosen(options); }),
                  HasSubstr("no kernel on cuda:0, a gfx1100: int8 keeps the same codes"));
    }
    *form = Quantize::kInt8;
    EXPECT_EQ(message_of([&] { (void)chosen(options); }), "");
    *form = Quantize::kNone;
  }
  options.devices = {"cpu"};
  options.memory.preset = "";
  options.memory.quantize = Quantize::kInt8Dynamic;
  EXPECT_EQ(message_of([&] { (void)chosen(options); }), "");
}

TEST(MemoryByDevice, GoesByTheSmallestGpu) {
  PipelineOptions both{.model = "x", .devices = {"cuda:0-1"}};
  EXPECT_EQ(chosen(both).memory.budget.device, 16'163'091'968);
  both.memory.preset = "auto";
  EXPECT_EQ(chosen(both).preset->name, "rx-7800-xt");
}

// Each rank has its own card; what is in 8 bits must be so on all of them.
TEST(MemoryByDevice, IsTheSameOnEveryRank) {
  auto host = two_cards();
  for (const int rank : {0, 1}) {
    host.launch = Launch{.rank = rank, .size = 2, .local_rank = rank};
    PipelineOptions options{.model = "x", .device = "cuda"};
    options.memory.preset = "auto";
    EXPECT_EQ(chosen(options, {}, host).preset->name, "rx-7800-xt");
  }
}

TEST(MemoryByDevice, ChangesNothingOnACpuUnlessAsked) {
  PipelineOptions options{.model = "x"};
  const auto choice = chosen(options);
  EXPECT_EQ(choice.preset, nullptr);
  EXPECT_FALSE(choice.memory.budget.is_set());
  options.memory.preset = "rx-7800-xt";
  const auto asked = chosen(options);
  EXPECT_EQ(asked.memory.offload.transformer, OffloadMode::kBlock);
  EXPECT_EQ(asked.preset->name, "rx-7800-xt");
}

}  // namespace braid::by_device_test
