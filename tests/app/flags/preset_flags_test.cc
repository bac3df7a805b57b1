// `--preset` together with flags that set the same.
#include "app/flags/preset_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "made_topology.h"
#include "message_of.h"

namespace braid::preset_flags_test {

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

std::string refusal(const PresetFlags& flags, const std::optional<Gpu>& gpu) {
  return message_of([&] { (void)preset_of(flags, "cuda:1", gpu); });
}

TEST(PresetFlags, SayWhereWeightsGo) {
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

// Even if they state what is the default without a preset.
TEST(PresetFlags, LoseAgainstWhatIsGiven) {
  const Memory asked;
  EXPECT_EQ(with_preset(kPreset, asked, {"--quantize"}).quantize, Quantize::kNone);
  EXPECT_EQ(with_preset(kPreset, asked, {"--quantize"}).quantize_text, Quantize::kInt8);
  EXPECT_EQ(with_preset(kPreset, asked, {"--quantize-text"}).quantize_text, Quantize::kNone);
  const auto kept = with_preset(kPreset, asked, {"--offload"}).offload;
  EXPECT_EQ(kept.transformer, OffloadMode::kNone);
  EXPECT_EQ(kept.text, OffloadMode::kNone);
  const auto text = with_preset(kPreset, asked, {"--offload-text"}).offload;
  EXPECT_EQ(text.transformer, OffloadMode::kBlock);
  EXPECT_EQ(text.text, OffloadMode::kNone);
  EXPECT_EQ(with_preset(kPreset, asked, {"--offload-group"}).offload.blocks, 1);
  EXPECT_EQ(with_preset(kPreset, asked, {"--prefetch"}).offload.prefetch, 1);
  EXPECT_EQ(with_preset(kPreset, asked, {"--resident"}).offload.resident, 0);
  EXPECT_EQ(with_preset(kPreset, asked, {"--residency"}).offload.residency, Residency::kStrided);
  EXPECT_EQ(with_preset(kPreset, asked, {"--pin"}).offload.pin, Pin::kAlways);
}

TEST(PresetFlags, KeepWhatAPresetDoesNotSay) {
  const Memory asked{.keep_dense = {"img_in"}, .offload = {.folder = "pages"}};
  const auto m = with_preset(kPreset, asked, {});
  EXPECT_EQ(m.keep_dense, asked.keep_dense);
  EXPECT_EQ(m.offload.folder, "pages");
}

TEST(PresetFlags, FindTheDevicesOwn) {
  const auto* const found =
      preset_of({.name = "auto", .given = {}}, "cuda:1", Gpu{"gfx1101", 17'163'091'968});
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->name, "rx-7800-xt");
  EXPECT_EQ(preset_of({.name = "none", .given = {}}, "cuda", Gpu{"gfx1101", 1}), nullptr);
  EXPECT_EQ(preset_of({.name = "", .given = {}}, "cuda", Gpu{"gfx1101", 1}), nullptr);
  EXPECT_EQ(preset_of({.name = "h100", .given = {}}, "cpu", {})->name, "h100");
  EXPECT_THAT(refusal({.name = "auto", .given = {}}, {}), HasSubstr("the device is cuda:1"));
  EXPECT_THAT(refusal({.name = "auto", .given = {}}, Gpu{"gfx906", 34'342'961'152}),
              HasSubstr("has nothing for cuda:1, a gfx906 of 34.3 GB"));
}

class MadeGpus : public testing::Test {
 protected:
  MadeGpus() {
    ::setenv("BRAID_KFD_TOPOLOGY", made_.path().c_str(), 1);
    made_.add(1, 110000, 25'753'026'560);
    made_.add(2, 110001, 17'163'091'968);
  }
  ~MadeGpus() override {
    for (const auto* const name : {"BRAID_KFD_TOPOLOGY", "RANK", "LOCAL_RANK", "WORLD_SIZE"})
      ::unsetenv(name);
  }
  void SetUp() override {
    if (find_gpus().size() != 2 || find_gpus()[0].architecture != "gfx1100")
      GTEST_SKIP() << "this machine's own GPUs come first";
  }

  MadeTopology made_;
};

TEST_F(MadeGpus, ImplyABudgetWhereTheLineDoesNotSayIt) {
  const PipelineOptions options{.model = "x", .device = "cuda"};
  const auto choice = choose_memory({}, options);
  EXPECT_TRUE(choice.memory.budget.is_implied);
  EXPECT_EQ(choice.memory.budget.device, 24'753'026'560);
  EXPECT_EQ(choice.memory.offload.transformer, OffloadMode::kNone);
  for (const auto* const flag : {"--offload", "--memory", "--host-memory"})
    EXPECT_FALSE(choose_memory({.name = "", .given = {flag}}, options).memory.budget.is_set());
  EXPECT_FALSE(choose_memory({.name = "none", .given = {}}, options).memory.budget.is_set());
}

// hipBLASLt has no such products for RDNA: the run would fail in its first step.
TEST_F(MadeGpus, AreAskedForNoProductsThatTheyLack) {
  PipelineOptions options{.model = "x", .devices = {"cuda:0-1"}};
  for (auto* const form : {&options.memory.quantize, &options.memory.quantize_text}) {
    *form = Quantize::kInt8Dynamic;
    for (const auto* const preset : {"", "auto", "none"})
      EXPECT_THAT(message_of([&] { (void)choose_memory({.name = preset, .given = {}}, options); }),
                  HasSubstr("no kernel on cuda:0, a gfx1100: int8 keeps the same codes"));
    EXPECT_NE(message_of([&] { check_products(options); }), "");
    *form = Quantize::kInt8;
    EXPECT_EQ(message_of([&] { check_products(options); }), "");
    *form = Quantize::kNone;
  }
  options.devices = {"cpu"};
  options.memory.quantize = Quantize::kInt8Dynamic;
  EXPECT_EQ(message_of([&] { check_products(options); }), "");
}

TEST_F(MadeGpus, AreJudgedByTheSmallest) {
  const PipelineOptions both{.model = "x", .devices = {"cuda:0-1"}};
  EXPECT_EQ(choose_memory({}, both).memory.budget.device, 16'163'091'968);
  EXPECT_THAT(choose_memory({.name = "auto", .given = {}}, both).said, HasSubstr("rx-7800-xt"));
}

// Each rank has its own card; what is in 8 bits must be so on all of them.
TEST_F(MadeGpus, AreJudgedAlikeByEveryRank) {
  ::setenv("WORLD_SIZE", "2", 1);
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  ::setenv("MASTER_PORT", "1", 1);
  for (const auto* const rank : {"0", "1"}) {
    ::setenv("RANK", rank, 1);
    ::setenv("LOCAL_RANK", rank, 1);
    const PipelineOptions options{.model = "x", .device = "cuda"};
    EXPECT_THAT(choose_memory({.name = "auto", .given = {}}, options).said,
                HasSubstr("rx-7800-xt"));
  }
}

TEST(PresetFlags, ChangeNothingOnACpuUnlessAsked) {
  const PipelineOptions options{.model = BRAID_SOURCE_DIR "/models/demo"};
  const auto choice = choose_memory({}, options);
  EXPECT_EQ(choice.said, "");
  EXPECT_EQ(choice.memory.offload.transformer, OffloadMode::kNone);
  const auto asked = choose_memory({.name = "rx-7800-xt", .given = {}}, options);
  EXPECT_EQ(asked.memory.offload.transformer, OffloadMode::kBlock);
  EXPECT_THAT(asked.said, HasSubstr("preset rx-7800-xt: "));
}

}  // namespace braid::preset_flags_test
