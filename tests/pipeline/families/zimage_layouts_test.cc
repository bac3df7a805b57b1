// Z-Image under every layout: against one rank, and against predictions.
#include <gtest/gtest.h>

#include "pipeline/planner/planner.h"
#include "pipeline/planner/traffic_text.h"
#include "pipeline/proofs/verify.h"
#include "zimage_model.h"

namespace braid::zimage_layouts_test {

// Guidance g multiplies the branches by 1 + g and -g, so the latents are off by 1 + 2 g times a
// branch's error at most.
void expect_zimage_equal(const DrawnZImage& got, const DrawnZImage& want, double guidance) {
  EXPECT_TRUE(at::equal(got["latents_initial"], want["latents_initial"]));
  for (const auto& [name, bound] : {std::pair{"prompt_embeds", 1e-5},
                                    {"velocity_first", 1e-5},
                                    {"latents_final", (1 + 2 * guidance) * 1e-5}}) {
    ASSERT_EQ(got[name].sizes(), want[name].sizes()) << name;
    EXPECT_LE(zimage_error(got[name], want[name]), bound) << name;
  }
}

struct NamedZImageLayout {
  const char* name;
  Layout layout;
};
const NamedZImageLayout kZImageLayouts[] = {
    {"Tp4Ulysses2", {.tp = 4, .ulysses = 2}},
    {"Tp2Text", {.tp = 2, .text = TextRanks::kShared}},
    {"Ring3", {.ring = 3}},
    {"LayerSplit4", {.pp = 4}},
};
const NamedZImageLayout kMoreZImageLayouts[] = {
    {"Tp2", {.tp = 2}},
    {"Tp3", {.tp = 3}},
    {"Tp4", {.tp = 4}},  // 2 2 1 1 heads
    {"Ring2Gathered", {.ring = 2, .ring_form = RingForm::kGather}},
    {"Ulysses2", {.ulysses = 2}},
    {"Ulysses4", {.ulysses = 4}},  // 2 2 1 1 heads
    {"Ring2Ulysses3", {.ring = 2, .ulysses = 3}},
    {"LayerSplit2", {.pp = 2}},
    {"Tp2Ulysses2", {.tp = 2, .ulysses = 2}},
    {"Tp2LayerSplit3", {.tp = 2, .pp = 3}},
    {"Ring2LayerSplit2", {.ring = 2, .pp = 2}},
};

class ZImageLayouts : public testing::TestWithParam<NamedZImageLayout> {};
const auto kNameOf = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(All, ZImageLayouts, testing::ValuesIn(kZImageLayouts), kNameOf);
INSTANTIATE_TEST_SUITE_P(Slow, ZImageLayouts, testing::ValuesIn(kMoreZImageLayouts), kNameOf);

TEST_P(ZImageLayouts, EqualOneRank) {
  static const auto one = drawn_zimage(zimage_with());
  expect_zimage_equal(drawn_zimage(zimage_with(GetParam().layout)), one, 0);
}

TEST_P(ZImageLayouts, EqualOneRankWithBranchesOfUnequalLengths) {
  const auto request = guided_zimage();
  static const auto one = drawn_zimage(zimage_with(), request);
  expect_zimage_equal(drawn_zimage(zimage_with(GetParam().layout), request), one,
                      request.guidance.value());
}

TEST_P(ZImageLayouts, AreProven) {
  const auto verdict = verify(deploy(zimage_with(GetParam().layout)),
                              {.probe = {.width = 112, .height = 80, .max_sequence_length = 40}});
  EXPECT_EQ(verdict.first_divergent(), nullptr);
  EXPECT_EQ(verdict.blocks.size(), 2 + 2 + 2 * 2 + 1u);
}

TEST_P(ZImageLayouts, MoveAndReadWhatIsPredicted) {
  const auto options = zimage_with(GetParam().layout);
  const auto degrees = degrees_of(GetParam().layout);
  const Engine engine(options, {});
  const auto facts = engine.generate(kZImageRequest, {}).facts;
  const auto job = job_of(deploy(options), kZImageRequest);
  const auto stage_of_rank = [&](int rank) {
    return stage_of(job.shape(),
                    share_of(job.shape().num_blocks(), place_of(degrees, rank).pp, degrees.pp));
  };
  EXPECT_EQ(text_of_traffic(facts.step_traffic),
            text_of_traffic(predict_traffic(job, degrees, 0, stage_of_rank(0))));
  const int last = degrees.product() - 1;
  const auto files = find_model(options);
  const auto stored_bytes = [&](const Part& part, const Stage& stage, int ranks) {
    const auto& tensors = job.tensors->of(part);
    std::int64_t numbers = 0;
    for (const auto& t : tensors.tensors)
      if (stage.holds(t, tensors.num_blocks())) numbers += numbers_of(t, ranks, ranks - 1);
    return numbers * std::int64_t(c10::elementSize(files.open(part.folder).dtype()));
  };
  const auto& family = *job.family;
  const auto want =
      stored_bytes(family.part(Part::Role::kDenoiser), stage_of_rank(last), degrees.tp) +
      stored_bytes(family.part(Part::Role::kDecoder), {.is_first = true}, 1);
  if (GetParam().layout.text == TextRanks::kShared) return;  // the last rank has text, too
  EXPECT_EQ(facts.load.bytes_read.back().all, want);
}

TEST(ZImageFamily, DrawsTheSameNoiseForStochasticStepsOnAllRanks) {
  auto request = guided_zimage();
  request.num_images = request.batch_size = 2;
  const auto drawn = [&](const Layout& layout) {
    auto options = zimage_with(layout);
    options.model = kZImageModel.parent_path().parent_path() / "zimage-stochastic/model";
    return drawn_zimage(options, request);
  };
  const auto one = drawn({});
  const auto plain = drawn_zimage(zimage_with(), request);
  EXPECT_GT(zimage_error(one["latents_final"], plain["latents_final"]), 0.1);
  for (const Layout& layout : {Layout{.ring = 3}, Layout{.ulysses = 2}, Layout{.pp = 2},
                               Layout{.dp = 2}, Layout{.tp = 2, .cfg = 2}})
    expect_zimage_equal(drawn(layout), one, request.guidance.value());
}

TEST(ZImageFamily, GuidesOnTwoRanksToTheSameBits) {
  const auto unguided = drawn_zimage(zimage_with());
  for (const double until : {1.0, 0.2}) {
    auto request = guided_zimage();
    request.cfg_until = until;
    const auto one = drawn_zimage(zimage_with(), request);
    const auto got = drawn_zimage(zimage_with({.cfg = 2}), request);
    EXPECT_TRUE(at::equal(got["latents_final"], one["latents_final"]));
    EXPECT_GT(zimage_error(one["latents_final"], unguided["latents_final"]), 1e-3);
  }
}

}  // namespace braid::zimage_layouts_test
