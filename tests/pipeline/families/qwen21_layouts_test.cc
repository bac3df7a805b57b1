// Qwen-Image-2.1 under every layout: against one rank, and against predictions.
#include <gtest/gtest.h>

#include "pipeline/planner/planner.h"
#include "pipeline/planner/traffic_text.h"
#include "pipeline/proofs/verify.h"
#include "qwen21_model.h"

namespace braid::qwen21_layouts_test {

// Guidance g multiplies the branches by g and 1 - g, so the latents are off by 2 g - 1 times a
// branch's error at most.
void expect_qwen21_equal(const DrawnQwen21& got, const DrawnQwen21& want, double guidance) {
  EXPECT_TRUE(at::equal(got["latents_initial"], want["latents_initial"]));
  for (const auto& [name, bound] : {std::pair{"prompt_embeds", 1e-5},
                                    {"velocity_first", 1e-5},
                                    {"latents_final", (2 * guidance - 1) * 1e-5}}) {
    ASSERT_EQ(got[name].sizes(), want[name].sizes()) << name;
    EXPECT_LE(qwen21_error(got[name], want[name]), bound) << name;
  }
}

struct NamedQwen21Layout {
  const char* name;
  Layout layout;
};
const NamedQwen21Layout kQwen21Layouts[] = {
    {"Tp4", {.tp = 4}},         {"Tp2Text", {.tp = 2, .text = TextRanks::kShared}},
    {"Ring3", {.ring = 3}},     {"Tp2Ulysses2", {.tp = 2, .ulysses = 2}},
    {"LayerSplit2", {.pp = 2}},
};
const NamedQwen21Layout kMoreQwen21Layouts[] = {
    {"Tp2", {.tp = 2}},
    {"Tp4WholeModulation", {.tp = 4, .modulation = SharedModulation::kNo}},
    {"Ring2Gathered", {.ring = 2, .ring_form = RingForm::kGather}},
    {"Ulysses2", {.ulysses = 2}},
    {"Ring2Ulysses4", {.ring = 2, .ulysses = 4}},
    {"Tp2LayerSplit2", {.tp = 2, .pp = 2}},
    {"Ring2LayerSplit2", {.ring = 2, .pp = 2}},
};

class Qwen21Layouts : public testing::TestWithParam<NamedQwen21Layout> {};
const auto kNameOf = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(All, Qwen21Layouts, testing::ValuesIn(kQwen21Layouts), kNameOf);
INSTANTIATE_TEST_SUITE_P(Slow, Qwen21Layouts, testing::ValuesIn(kMoreQwen21Layouts), kNameOf);

TEST_P(Qwen21Layouts, EqualOneRank) {
  static const auto one = drawn_qwen21(qwen21_with());
  expect_qwen21_equal(drawn_qwen21(qwen21_with(GetParam().layout)), one, 1);
}

TEST_P(Qwen21Layouts, EqualOneRankWithBranchesOfUnequalLengths) {
  const auto request = guided_qwen21();
  static const auto one = drawn_qwen21(qwen21_with(), request);
  expect_qwen21_equal(drawn_qwen21(qwen21_with(GetParam().layout), request), one,
                      request.guidance.value());
}

// In every step the same as from what is kept.
TEST_P(Qwen21Layouts, EqualOneRankWithoutKeptPrefixes) {
  auto request = guided_qwen21();
  request.pictures.reference_cache = ReferenceCache::kOff;
  static const auto one = drawn_qwen21(qwen21_with(), request);
  expect_qwen21_equal(drawn_qwen21(qwen21_with(GetParam().layout), request), one,
                      request.guidance.value());
}

// The image tokens, two blocks, the end.
TEST_P(Qwen21Layouts, AreProven) {
  const auto verdict = verify(deploy(qwen21_with(GetParam().layout)),
                              {.probe = {.width = 96, .height = 64, .max_sequence_length = 40}});
  EXPECT_EQ(verdict.first_divergent(), nullptr);
  EXPECT_EQ(verdict.blocks.size(), 1 + 2 + 1u);
}

TEST_P(Qwen21Layouts, MoveAndReadWhatIsPredicted) {
  const auto options = qwen21_with(GetParam().layout);
  const auto degrees = degrees_of(GetParam().layout);
  const Engine engine(options, {});
  const auto facts = engine.generate(kQwen21Request, {}, {.record = RecordTensors::kYes}).facts;
  auto request = kQwen21Request;
  request.max_sequence_length = int(facts.recording.at("prompt_embeds").size(1));
  const auto job = job_of(deploy(options), request);
  const auto stage_of_rank = [&](int rank) {
    return stage_of(job.shape(),
                    share_of(job.shape().num_blocks(), place_of(degrees, rank).pp, degrees.pp));
  };
  EXPECT_EQ(text_of_traffic(facts.step_traffic),
            text_of_traffic(predict_traffic(job, degrees, 0, stage_of_rank(0))));
  if (GetParam().layout.text == TextRanks::kShared) return;  // the last rank has text, too
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
  EXPECT_EQ(facts.load.bytes_read.back().all, want);
}

TEST(Qwen21Family, GuidesOnTwoRanksToTheSameBits) {
  const auto request = guided_qwen21();
  const auto one = drawn_qwen21(qwen21_with(), request);
  const auto got = drawn_qwen21(qwen21_with({.cfg = 2}), request);
  EXPECT_TRUE(at::equal(got["latents_final"], one["latents_final"]));
  EXPECT_GT(qwen21_error(one["latents_final"], drawn_qwen21(qwen21_with())["latents_final"]), 1e-3);
}

TEST(Qwen21Family, DrawsPicturesOnTwoRanks) {
  auto request = guided_qwen21();
  request.num_images = request.batch_size = 2;
  const auto one = drawn_qwen21(qwen21_with(), request);
  expect_qwen21_equal(drawn_qwen21(qwen21_with({.dp = 2}), request), one, request.guidance.value());
}

// References are 8240 tokens before the image's.
TEST(SlowQwen21Family, LooksAtReferencesUnderLayouts) {
  const auto request = qwen21_with_references();
  const auto one = drawn_qwen21(qwen21_with(), request);
  for (const Layout& layout : {Layout{.tp = 2}, Layout{.ring = 2}, Layout{.ulysses = 2},
                               Layout{.cfg = 2}, Layout{.pp = 2}})
    expect_qwen21_equal(drawn_qwen21(qwen21_with(layout), request), one, request.guidance.value());
}

}  // namespace braid::qwen21_layouts_test
