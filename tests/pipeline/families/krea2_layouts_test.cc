// Krea 2 under every layout: against one rank, and against predictions.
#include <gtest/gtest.h>

#include "krea2_model.h"
#include "pipeline/planner/planner.h"
#include "pipeline/planner/traffic_text.h"
#include "pipeline/proofs/verify.h"
#include "weights/sharding.h"

namespace braid::krea2_layouts_test {

// Guidance g multiplies the branches by 1 + g and -g, so the latents are off by 1 + 2 g times a
// branch's error at most.
void expect_krea2_equal(const DrawnKrea2& got, const DrawnKrea2& want, double guidance) {
  EXPECT_TRUE(at::equal(got["latents_initial"], want["latents_initial"]));
  for (const auto& [name, bound] : {std::pair{"prompt_embeds", 1e-5},
                                    {"velocity_first", 1e-5},
                                    {"latents_final", (1 + 2 * guidance) * 1e-5}}) {
    ASSERT_EQ(got[name].sizes(), want[name].sizes()) << name;
    EXPECT_LE(krea2_error(got[name], want[name]), bound) << name;
  }
}

struct NamedKrea2Layout {
  const char* name;
  Layout layout;
};
const NamedKrea2Layout kKrea2Layouts[] = {
    {"Tp4Ulysses2", {.tp = 4, .ulysses = 2}},
    {"Tp2Text", {.tp = 2, .text = TextRanks::kShared}},
    {"Ring3", {.ring = 3}},
    {"Ulysses5", {.ulysses = 5}},  // of the text's heads of keys, ranks repeat some
    {"LayerSplit3", {.pp = 3}},    // the last stage only fuses the text
};
const NamedKrea2Layout kMoreKrea2Layouts[] = {
    {"Tp2", {.tp = 2}},
    {"Tp3", {.tp = 3}},
    {"Tp4", {.tp = 4}},  // 6 queries for 1 1/2 heads of keys, which come as 3
    {"Tp6", {.tp = 6}},
    {"Tp8", {.tp = 8}},  // 3 queries for 3/4 of a head of keys
    {"Tp8WholeModulation", {.tp = 8, .modulation = SharedModulation::kNo}},
    {"Ring2Gathered", {.ring = 2, .ring_form = RingForm::kGather}},
    {"Ulysses2", {.ulysses = 2}},
    {"Ring2Ulysses3", {.ring = 2, .ulysses = 3}},
    {"LayerSplit2", {.pp = 2}},
    {"Tp2LayerSplit2", {.tp = 2, .pp = 2}},
    {"Ring2LayerSplit2", {.ring = 2, .pp = 2}},
};

class Krea2Layouts : public testing::TestWithParam<NamedKrea2Layout> {};
const auto kNameOf = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(All, Krea2Layouts, testing::ValuesIn(kKrea2Layouts), kNameOf);
INSTANTIATE_TEST_SUITE_P(Slow, Krea2Layouts, testing::ValuesIn(kMoreKrea2Layouts), kNameOf);

TEST_P(Krea2Layouts, EqualOneRank) {
  static const auto one = drawn_krea2(krea2_with());
  expect_krea2_equal(drawn_krea2(krea2_with(GetParam().layout)), one, 0);
}

TEST_P(Krea2Layouts, EqualOneRankWithBranchesOfUnequalLengths) {
  const auto request = guided_krea2();
  static const auto one = drawn_krea2(krea2_with(), request);
  expect_krea2_equal(drawn_krea2(krea2_with(GetParam().layout), request), one,
                     request.guidance.value());
}

TEST_P(Krea2Layouts, EqualOneRankWithSeveralPicturesInABatch) {
  auto request = kKrea2Request;
  request.num_images = request.batch_size = 2;
  static const auto one = drawn_krea2(krea2_with(), request);
  expect_krea2_equal(drawn_krea2(krea2_with(GetParam().layout), request), one, 0);
}

// The image tokens, six places of the text's fusion, two blocks of two kinds of tokens, the end.
TEST_P(Krea2Layouts, AreProven) {
  const auto verdict = verify(deploy(krea2_with(GetParam().layout)),
                              {.probe = {.width = 112, .height = 80, .max_sequence_length = 40}});
  EXPECT_EQ(verdict.first_divergent(), nullptr);
  EXPECT_EQ(verdict.blocks.size(), 1 + 6 + 2 * 2 + 1u);
}

TEST_P(Krea2Layouts, MoveAndReadWhatIsPredicted) {
  const auto options = krea2_with(GetParam().layout);
  const auto degrees = degrees_of(GetParam().layout);
  const Engine engine(options, {});
  const auto facts = engine.generate(kKrea2Request, {}, {.record = RecordTensors::kYes}).facts;
  auto request = kKrea2Request;
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

TEST(Krea2Family, GuidesOnTwoRanksToTheSameBits) {
  const auto request = guided_krea2();
  const auto one = drawn_krea2(krea2_with(), request);
  const auto got = drawn_krea2(krea2_with({.cfg = 2}), request);
  EXPECT_TRUE(at::equal(got["latents_final"], one["latents_final"]));
  EXPECT_GT(krea2_error(one["latents_final"], drawn_krea2(krea2_with())["latents_final"]), 1e-3);
}

TEST(Krea2Family, DrawsPicturesOnTwoRanks) {
  auto request = guided_krea2();
  request.num_images = request.batch_size = 2;
  const auto one = drawn_krea2(krea2_with(), request);
  expect_krea2_equal(drawn_krea2(krea2_with({.dp = 2}), request), one, request.guidance.value());
}

}  // namespace braid::krea2_layouts_test
