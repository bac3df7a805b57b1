// Qwen-Image under every layout: against one rank, and against predictions.
#include <gtest/gtest.h>

#include "pipeline/planner/planner.h"
#include "pipeline/planner/traffic_text.h"
#include "pipeline/proofs/verify.h"
#include "qwen_image_model.h"

namespace braid::qwen_image_layouts_test {

// Guidance g multiplies the branches by g and 1 - g, so the latents are off by 2 g - 1 times a
// branch's error at most.
void expect_qwen_image_equal(const DrawnQwenImage& got, const DrawnQwenImage& want,
                             double guidance) {
  EXPECT_TRUE(at::equal(got["latents_initial"], want["latents_initial"]));
  for (const auto& [name, bound] : {std::pair{"prompt_embeds", 1e-5},
                                    {"velocity_first", 1e-5},
                                    {"latents_final", (2 * guidance - 1) * 1e-5}}) {
    ASSERT_EQ(got[name].sizes(), want[name].sizes()) << name;
    EXPECT_LE(qwen_image_error(got[name], want[name]), bound) << name;
  }
}

struct NamedQwenImageLayout {
  const char* name;
  Layout layout;
};
const NamedQwenImageLayout kQwenImageLayouts[] = {
    {"Tp4", {.tp = 4}},
    {"Tp2Ulysses2", {.tp = 2, .ulysses = 2}},
    {"Ring3", {.ring = 3}},
    {"LayerSplit2", {.pp = 2}},
};
const NamedQwenImageLayout kMoreQwenImageLayouts[] = {
    {"Tp2", {.tp = 2}},
    {"Tp4WholeModulation", {.tp = 4, .modulation = SharedModulation::kNo}},
    {"Ring2Gathered", {.ring = 2, .ring_form = RingForm::kGather}},
    {"Ulysses2", {.ulysses = 2}},
    {"Ring2Ulysses2", {.ring = 2, .ulysses = 2}},
    {"Tp2LayerSplit2", {.tp = 2, .pp = 2}},
    {"Ring2LayerSplit2", {.ring = 2, .pp = 2}},
};

class QwenImageLayouts : public testing::TestWithParam<NamedQwenImageLayout> {};
const auto kNameOf = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(All, QwenImageLayouts, testing::ValuesIn(kQwenImageLayouts), kNameOf);
INSTANTIATE_TEST_SUITE_P(Slow, QwenImageLayouts, testing::ValuesIn(kMoreQwenImageLayouts), kNameOf);

TEST_P(QwenImageLayouts, EqualOneRankWithBranchesOfUnequalLengths) {
  const auto request = guided_qwen_image();
  static const auto one = drawn_qwen_image(qwen_image_with(), request);
  expect_qwen_image_equal(drawn_qwen_image(qwen_image_with(GetParam().layout), request), one,
                          request.guidance.value());
}

TEST_P(QwenImageLayouts, AreProven) {
  const auto verdict = verify(deploy(qwen_image_with(GetParam().layout)),
                              {.probe = {.width = 112, .height = 80, .max_sequence_length = 40}});
  EXPECT_EQ(verdict.first_divergent(), nullptr);
  EXPECT_EQ(verdict.blocks.size(), 2 + 2 * 2 + 1u);
}

TEST_P(QwenImageLayouts, MoveAndReadWhatIsPredicted) {
  const auto options = qwen_image_with(GetParam().layout);
  const auto degrees = degrees_of(GetParam().layout);
  const Engine engine(options, {});
  const auto facts = engine.generate(kQwenImageRequest, {}, {.record = RecordTensors::kYes}).facts;
  auto request = kQwenImageRequest;
  request.max_sequence_length = int(facts.recording.at("prompt_embeds").size(1));
  const auto job = job_of(deploy(options), request);
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
  EXPECT_EQ(facts.load.bytes_read.back().all,
            stored_bytes(family.part(Part::Role::kDenoiser), stage_of_rank(last), degrees.tp) +
                stored_bytes(family.part(Part::Role::kDecoder), {.is_first = true}, 1));
}

TEST(QwenImageFamily, GuidesOnTwoRanksToTheSameBits) {
  const auto request = guided_qwen_image();
  const auto one = drawn_qwen_image(qwen_image_with(), request);
  const auto got = drawn_qwen_image(qwen_image_with({.cfg = 2}), request);
  EXPECT_TRUE(at::equal(got["latents_final"], one["latents_final"]));
  const auto plain = drawn_qwen_image(qwen_image_with());
  EXPECT_GT(qwen_image_error(one["latents_final"], plain["latents_final"]), 1e-3);
}

TEST(QwenImageFamily, DrawsPicturesOnTwoRanks) {
  auto request = guided_qwen_image();
  request.num_images = request.batch_size = 2;
  const auto one = drawn_qwen_image(qwen_image_with(), request);
  expect_qwen_image_equal(drawn_qwen_image(qwen_image_with({.dp = 2}), request), one,
                          request.guidance.value());
}

}  // namespace braid::qwen_image_layouts_test
