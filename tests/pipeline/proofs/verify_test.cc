// `verify` passes correct layouts, and names the block that first shows each known mistake.
#include "pipeline/proofs/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "message_of.h"
#include "pictures.h"

namespace braid::verify_test {

const std::filesystem::path kModel = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo";

const std::filesystem::path kFixtures =
    std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity";

Verdict verdict_of(const Layout& layout, std::optional<Fault> fault = {},
                   Dtype dtype = Dtype::kFloat32) {
  return verify(deploy({.model = kModel, .dtype = dtype, .layout = layout}),
                {.probe = {.width = 112, .height = 80, .max_sequence_length = 21}, .fault = fault});
}

bool is_attention(const VerifiedBlock& block) {
  return block.where.find(" attention") != block.where.npos;
}

// Places of the bundled model; attention is one where ranks share tokens.
std::size_t num_places(const Layout& layout) {
  const std::size_t attentions = layout.ring * layout.ulysses > 1 ? 2 + 6 : 0;
  return 2 + 2 * 2 + 2 * 6 + 1 + attentions;
}

TEST(SlowVerify, PassesHybridLayouts) {
  for (const auto& layout :
       {Layout{.tp = 2, .ring = 2, .ulysses = 2}, Layout{.tp = 3, .ring = 3},
        Layout{.tp = 2, .ulysses = 5}, Layout{.pp = 3}, Layout{.tp = 2, .ring = 2, .pp = 2}}) {
    const auto verdict = verdict_of(layout);
    ASSERT_EQ(verdict.blocks.size(), num_places(layout));
    EXPECT_EQ(verdict.blocks.back().where, "velocity");
    EXPECT_EQ(verdict.first_divergent(), nullptr);
    for (const auto& block : verdict.blocks) EXPECT_LT(block.difference, 1e-5) << block.where;
  }
}

// A step is compared for every branch of guidance and every picture of data-parallel ranks.
TEST(SlowVerify, ProvesBranchesAndPictures) {
  for (const auto& layout :
       {Layout{.cfg = 2}, Layout{.dp = 2}, Layout{.ring = 2, .cfg = 2, .pp = 2},
        Layout{.tp = 2, .cfg = 2, .dp = 2}}) {
    const auto verdict = verdict_of(layout);
    const auto items = std::size_t(layout.cfg * layout.dp);
    ASSERT_EQ(verdict.blocks.size(), items * num_places(layout));
    EXPECT_EQ(verdict.first_divergent(), nullptr);
    std::set<std::string> places;
    for (const auto& block : verdict.blocks) {
      EXPECT_LT(block.difference, 1e-5) << block.where;
      EXPECT_GE(block.difference, 0) << block.where;
      places.insert(block.where);
    }
    EXPECT_EQ(places.size(), verdict.blocks.size());
    EXPECT_EQ(places.contains("img_in of branch 2"), layout.cfg > 1);
    EXPECT_EQ(places.contains("velocity of picture 2"), layout.dp > 1);
  }
}

TEST(Verify, GivesEveryRankAPictureWhateverItsShare) {
  Layout layout{.dp = 3};
  layout.shares.dp = {3, 2, 1};
  const auto verdict = verdict_of(layout);
  EXPECT_EQ(verdict.first_divergent(), nullptr);
  EXPECT_TRUE(std::ranges::any_of(verdict.blocks, [](const VerifiedBlock& block) {
    return block.where == "velocity of picture 4";
  }));
}

// Each reference is a run of tokens that ranks split separately.
TEST(Verify, PassesWithReferences) {
  PipelineOptions model{.model = kFixtures / "klein-base/model",
                        .dtype = Dtype::kFloat32,
                        .layout = {.ring = 2, .ulysses = 2}};
  VerifyOptions options{.probe = {.width = 80, .height = 64, .max_sequence_length = 21}};
  const auto alone = verify(deploy(model), options);
  options.probe.pictures.references = {grey_picture(70, 64), grey_picture(80, 112)};
  const auto verdict = verify(deploy(model), options);
  EXPECT_EQ(verdict.first_divergent(), nullptr);
  EXPECT_NE(verdict.blocks.back().difference, alone.blocks.back().difference);
  options.fault = Fault::kDropLse;
  EXPECT_NE(verify(deploy(model), options).first_divergent(), nullptr);
  model.model = kModel;
  EXPECT_THROW(verify(deploy(model), options), InputError);
}

// Keys kept of references are attended to under every layout, unlike references seen in every step.
TEST(Verify, PassesWithReferencesThatAreSeenOnce) {
  PipelineOptions model{.model = kFixtures / "klein-kept/model",
                        .dtype = Dtype::kFloat32,
                        .layout = {.ring = 2, .ulysses = 2}};
  VerifyOptions options{.probe = {.width = 80,
                                  .height = 64,
                                  .max_sequence_length = 21,
                                  .pictures = {.references = {grey_picture(80, 112)}}}};
  const auto kept = verify(deploy(model), options);
  EXPECT_EQ(kept.first_divergent(), nullptr);
  options.probe.pictures.reference_cache = ReferenceCache::kOff;
  const auto anew = verify(deploy(model), options);
  EXPECT_EQ(anew.first_divergent(), nullptr);
  EXPECT_NE(kept.blocks.back().difference, anew.blocks.back().difference);
  options.probe.pictures.reference_cache = ReferenceCache::kAuto;
  options.fault = Fault::kStaleKv;
  EXPECT_NE(verify(deploy(model), options).first_divergent(), nullptr);
}

// Klein looks at the initial picture and draws a part of it, at its size.
TEST(Verify, LooksAtAnInitialPicture) {
  const auto picture = grey_picture(80, 64);
  PipelineOptions model{
      .model = kFixtures / "klein-base/model", .dtype = Dtype::kFloat32, .layout = {.ring = 2}};
  VerifyOptions options{.probe = {.width = 80, .height = 64, .max_sequence_length = 21}};
  const auto alone = verify(deploy(model), options);
  options.probe.width = options.probe.height = 0;
  options.probe.pictures = {.mask = picture};
  EXPECT_THROW(verify(deploy(model), options), InputError);
  options.probe.pictures.init = picture;
  const auto verdict = verify(deploy(model), options);
  EXPECT_EQ(verdict.first_divergent(), nullptr);
  EXPECT_NE(verdict.blocks.back().difference, alone.blocks.back().difference);
}

TEST(Verify, PassesWithControlNets) {
  const auto model = kFixtures / "controlnets/model";
  PipelineOptions with_nets{.model = model,
                            .controlnets = {model / "controlnet_1", model / "controlnet_2"},
                            .dtype = Dtype::kFloat32};
  VerifyOptions options{.probe = {.width = 80, .height = 64, .max_sequence_length = 21}};
  for (const auto& layout :
       {Layout{.tp = 2}, Layout{.ring = 2}, Layout{.ulysses = 2}, Layout{.pp = 2}}) {
    with_nets.layout = layout;
    const auto verdict = verify(deploy(with_nets), options);
    EXPECT_EQ(verdict.first_divergent(), nullptr);
    EXPECT_EQ(verdict.blocks.front().where, "control.double.0");
  }
  with_nets.layout = {.ring = 2};
  with_nets.memory.offload.transformer = OffloadMode::kBlock;
  EXPECT_EQ(verify(deploy(with_nets), options).first_divergent(), nullptr);
  options.fault = Fault::kStaleKv;
  EXPECT_EQ(verify(deploy(with_nets), options).first_divergent()->where,
            "double_blocks.0 attention");
}

TEST(Verify, PassesInBfloat16) {
  const auto verdict = verdict_of({.tp = 2, .ring = 2}, {}, Dtype::kBfloat16);
  EXPECT_EQ(verdict.first_divergent(), nullptr);
  EXPECT_GT(verdict.blocks.back().difference, 1e-5) << "compared with itself?";
}

// If the whole transformer does not fit, one rank holds two blocks at a time, with the same bits.
TEST(Verify, PagesOneRankWhereTheModelDoesNotFit) {
  const auto folder = std::filesystem::temp_directory_path() / text_of("braid_verify_", ::getpid());
  PipelineOptions model{.model = kModel, .layout = {.tp = 2}};
  VerifyOptions options{.probe = {.width = 64}};
  model.memory.offload.folder = folder;
  options.device_bytes = 10'000'000'000;
  const auto whole = verify(deploy(model), options);
  EXPECT_FALSE(whole.one_rank_was_paged);
  options.device_bytes = 100'000'000;
  const auto paged = verify(deploy(model), options);
  EXPECT_TRUE(paged.one_rank_was_paged);
  EXPECT_FALSE(std::filesystem::is_empty(folder));
  ASSERT_EQ(paged.blocks.size(), whole.blocks.size());
  for (std::size_t i = 0; i < paged.blocks.size(); ++i)
    EXPECT_EQ(paged.blocks[i].difference, whole.blocks[i].difference) << paged.blocks[i].where;
  std::filesystem::remove_all(folder);
  model.memory.offload.folder.clear();
  EXPECT_THROW(verify(deploy(model), options),
               InputError);  // on a CPU, pages in memory do not help
}

struct Case {
  const char* name;
  Layout layout;
  const char* first;  // the place that shows the fault first
};

class Faults : public testing::TestWithParam<Case> {};

TEST_P(Faults, AreFoundWhereTheyHappen) {
  const auto verdict = verdict_of(GetParam().layout, fault_named(GetParam().name));
  ASSERT_NE(verdict.first_divergent(), nullptr);
  EXPECT_EQ(verdict.first_divergent()->where, GetParam().first);
  EXPECT_EQ(verdict_of(GetParam().layout).first_divergent(), nullptr) << "without the fault";
}

INSTANTIATE_TEST_SUITE_P(
    Injected, Faults,
    testing::Values(Case{"contiguous-slice", {.tp = 2}, "single_blocks.0 image"},
                    Case{"zero-timestep", {.ring = 2}, "double_blocks.0 image"},
                    Case{"skip-reduce", {.tp = 2}, "single_blocks.0 image"},
                    Case{"drop-lse", {.ring = 2}, "double_blocks.0 attention"},
                    Case{"stale-kv", {.ring = 3}, "double_blocks.0 attention"},
                    Case{"skip-reduce", {.tp = 2, .pp = 2}, "single_blocks.0 image"},
                    Case{"rank-noise", {.ulysses = 2}, "img_in"},
                    Case{"rank-noise", {.cfg = 2}, "img_in of branch 2"},
                    Case{"rank-noise", {.ulysses = 2, .pp = 2}, "img_in"},
                    Case{"zero-timestep", {.dp = 3}, "double_blocks.0 image of picture 2"},
                    Case{"stale-kv", {.ring = 2, .cfg = 2}, "double_blocks.0 attention"}),
    [](const auto& info) {
      std::string name = info.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name + "_pp" + std::to_string(info.param.layout.pp) + "_cfg" +
             std::to_string(info.param.layout.cfg) + "_dp" + std::to_string(info.param.layout.dp);
    });

// A verdict on a fault that was never there would be taken for one on the proof.
TEST(Verify, RefusesAFaultThatTheLayoutLeavesWithoutEffect) {
  const auto refusal = [](const char* fault, const Layout& layout) {
    return message_of([&] { (void)verdict_of(layout, fault_named(fault)); });
  };
  for (const auto* const fault : {"contiguous-slice", "skip-reduce"})
    EXPECT_THAT(refusal(fault, {.ring = 2}),
                testing::HasSubstr(std::string(fault) + " changes nothing in this layout: it needs "
                                                        "tp above 1"));
  for (const auto* const fault : {"drop-lse", "stale-kv"})
    for (const auto& layout : {Layout{.tp = 2}, Layout{.ulysses = 2}})
      EXPECT_THAT(refusal(fault, layout), testing::HasSubstr("it needs ring above 1"));
  for (const auto* const fault : {"rank-noise", "zero-timestep"})
    EXPECT_THAT(refusal(fault, {.pp = 2}), testing::HasSubstr("several ranks beside those of pp"));
  for (const auto& [name, fault] : fault_names())
    EXPECT_THAT(refusal(name.c_str(), {}), testing::HasSubstr(name + " changes nothing"));
}

// The layers of Krea 2 have inputs of one part each.
TEST(Verify, RefusesAFaultThatTheModelLeavesWithoutEffect) {
  const PipelineOptions model{
      .model = kFixtures / "krea2/model", .dtype = Dtype::kFloat32, .layout = {.tp = 2}};
  VerifyOptions options{.probe = {.width = 80, .height = 64, .max_sequence_length = 21}};
  options.fault = Fault::kSkipReduce;
  EXPECT_NE(verify(deploy(model), options).first_divergent(), nullptr);
  options.fault = Fault::kContiguousSlice;
  EXPECT_THAT(message_of([&] { (void)verify(deploy(model), options); }),
              testing::HasSubstr("changes nothing in this model"));
}

// 16 bits hide more than float32. Faults that are not found must be refused.
class SlowFaultsOfFamilies : public testing::TestWithParam<const char*> {
 protected:
  static Verdict verdict(const Layout& layout, std::optional<Fault> fault) {
    return verify(deploy({.model = kFixtures / GetParam() / "model",
                          .dtype = Dtype::kBfloat16,
                          .layout = layout}),
                  {.probe = {.width = 128, .height = 128}, .fault = fault});
  }
};

TEST_P(SlowFaultsOfFamilies, AreFoundOrRefused) {
  for (const auto& layout : {Layout{.tp = 2}, Layout{.ring = 2}}) {
    const auto honest = verdict(layout, {});
    EXPECT_EQ(honest.first_divergent(), nullptr) << honest.first_divergent()->where;
    for (const auto& [name, fault] : fault_names()) {
      bool is_found = false;
      const auto refusal = message_of(
          [&, fault = fault] { is_found = verdict(layout, fault).first_divergent() != nullptr; });
      EXPECT_TRUE(is_found || refusal.find("changes nothing in this") != refusal.npos)
          << name << " " << refusal;
      if (name == "skip-reduce") {
        EXPECT_EQ(is_found, layout.tp > 1) << "every family has sums";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Verify, SlowFaultsOfFamilies,
                         testing::Values("basic", "klein", "klein-base", "klein-kept", "flux2-dev",
                                         "qwen-image", "qwen-image-edit", "qwen-image-layered",
                                         "qwen-image-odd", "zimage-turbo", "krea2", "qwen21",
                                         "flux3", "joy"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// What a right layout rounds is near half of what is tolerated, in whatever model.
TEST(Verify, ComparesAttentionAlone) {
  for (const auto dtype : {Dtype::kBfloat16, Dtype::kFloat16}) {
    const auto verdict = verdict_of({.ring = 2, .ulysses = 2}, {}, dtype);
    for (const auto& block : verdict.blocks)
      if (is_attention(block)) {
        EXPECT_GT(block.difference, 0.3 * verdict.tolerances.attention) << block.where;
        EXPECT_LT(block.difference, 0.75 * verdict.tolerances.attention) << block.where;
      }
    EXPECT_TRUE(std::ranges::any_of(verdict.blocks, is_attention));
  }
}

TEST(Verify, NamesTheRankThatDiffers) {
  const auto verdict = verdict_of({.ulysses = 3}, Fault::kRankNoise);
  EXPECT_EQ(verdict.first_divergent()->rank, 2);
}

TEST(FaultNames, AreListedWhenOneIsUnknown) {
  try {
    fault_named("gremlins");
    FAIL();
  } catch (const InputError& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("'gremlins'; the faults are contiguous-slice, "));
  }
}

}  // namespace braid::verify_test
