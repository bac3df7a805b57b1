// FLUX.3 under every layout: against one rank, and against predictions.
#include <gtest/gtest.h>

#include "flux3_model.h"
#include "pipeline/planner/planner.h"
#include "pipeline/planner/traffic_text.h"
#include "pipeline/proofs/verify.h"

namespace braid::flux3_layouts_test {

// Guidance s multiplies the branches by s and 1 - s, so the latents are off by 2 s - 1 times a
// branch's error at most.
void expect_flux3_equal(const DrawnFlux3& got, const DrawnFlux3& want, double guidance) {
  EXPECT_TRUE(at::equal(got["latents_initial"], want["latents_initial"]));
  for (const auto& [name, bound] : {std::pair{"prompt_embeds", 1e-5},
                                    {"velocity_first", 1e-5},
                                    {"latents_final", (2 * guidance - 1) * 1e-5}}) {
    ASSERT_EQ(got[name].sizes(), want[name].sizes()) << name;
    EXPECT_LE(flux3_error(got[name], want[name]), bound) << name;
  }
}

struct NamedFlux3Layout {
  const char* name;
  Layout layout;
};
const NamedFlux3Layout kFlux3Layouts[] = {
    {"Tp4", {.tp = 4}},
    {"Tp2Ulysses2", {.tp = 2, .ulysses = 2}},
    {"Tp2Text", {.tp = 2, .text = TextRanks::kShared}},
    {"Ring3", {.ring = 3}},
    {"LayerSplit5", {.pp = 5}},
};
const NamedFlux3Layout kMoreFlux3Layouts[] = {
    {"Tp2", {.tp = 2}},
    {"Tp2WholeModulation", {.tp = 2, .modulation = SharedModulation::kNo}},
    {"Ring2Gathered", {.ring = 2, .ring_form = RingForm::kGather}},
    {"Ulysses2", {.ulysses = 2}},
    {"Ulysses3", {.ulysses = 3}},
    {"Ring2Ulysses3", {.ring = 2, .ulysses = 3}},
    {"LayerSplit2", {.pp = 2}},
    {"Tp2LayerSplit2", {.tp = 2, .pp = 2}},
    {"Ring2LayerSplit2", {.ring = 2, .pp = 2}},
};

class Flux3Layouts : public testing::TestWithParam<NamedFlux3Layout> {};
const auto kNameOf = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(All, Flux3Layouts, testing::ValuesIn(kFlux3Layouts), kNameOf);
INSTANTIATE_TEST_SUITE_P(Slow, Flux3Layouts, testing::ValuesIn(kMoreFlux3Layouts), kNameOf);

TEST_P(Flux3Layouts, EqualOneRank) {
  static const auto one = drawn_flux3(flux3_with());
  expect_flux3_equal(drawn_flux3(flux3_with(GetParam().layout)), one, 1);
}

TEST_P(Flux3Layouts, EqualOneRankWithReferencesAndBranchesOfUnequalLengths) {
  const auto request = guided_flux3();
  static const auto one = drawn_flux3(flux3_with(), request);
  expect_flux3_equal(drawn_flux3(flux3_with(GetParam().layout), request), one,
                     request.guidance.value());
}

// Text and image as they come in, after their own two blocks, after two blocks of both, the end.
TEST_P(Flux3Layouts, AreProven) {
  const auto verdict = verify(deploy(flux3_with(GetParam().layout)),
                              {.probe = {.width = 112, .height = 80, .max_sequence_length = 40}});
  EXPECT_EQ(verdict.first_divergent(), nullptr);
  EXPECT_EQ(verdict.blocks.size(), 2 + 2 * 2 + 2 * 2 + 1u);
}

TEST_P(Flux3Layouts, MoveAndReadWhatIsPredicted) {
  const auto options = flux3_with(GetParam().layout);
  const auto degrees = degrees_of(GetParam().layout);
  const Engine engine(options, {});
  std::int64_t read = 0;  // by the last rank
  for (const bool has_references : {false, true}) {
    auto request = kFlux3Request;
    if (has_references) request.pictures = guided_flux3().pictures;
    const auto facts = engine.generate(request, {}, {.record = RecordTensors::kYes}).facts;
    read = facts.load.bytes_read.back().all;
    request.max_sequence_length = int(facts.recording.at("prompt_embeds").size(1));
    const auto job = job_of(deploy(options), request);
    const auto stage = stage_of(job.shape(), share_of(job.shape().num_blocks(), 0, degrees.pp));
    EXPECT_EQ(text_of_traffic(facts.step_traffic),
              text_of_traffic(predict_traffic(job, degrees, 0, stage)))
        << has_references;
  }
  if (GetParam().layout.text == TextRanks::kShared) return;  // the last rank has text, too
  const auto job = job_of(deploy(options), kFlux3Request);
  const auto stage_of_last =
      stage_of(job.shape(), share_of(job.shape().num_blocks(), degrees.pp - 1, degrees.pp));
  const auto files = find_model(options);
  const auto stored_bytes = [&](const Part& part, const Stage& stage, int ranks) {
    const auto& tensors = job.tensors->of(part);
    std::int64_t numbers = 0;
    for (const auto& t : tensors.tensors)
      if (stage.holds(t, tensors.num_blocks())) numbers += numbers_of(t, ranks, ranks - 1);
    return numbers * std::int64_t(c10::elementSize(files.open(part.folder).dtype()));
  };
  const auto& family = *job.family;
  EXPECT_EQ(read, stored_bytes(family.part(Part::Role::kDenoiser), stage_of_last, degrees.tp) +
                      stored_bytes(family.part(Part::Role::kDecoder), {.is_first = true}, 1));
}

// Each stage knows where a step leads.
TEST(Flux3Family, DrawsAFlowMapOnSeveralRanks) {
  auto request = kFlux3Request;
  request.guidance.reset();
  request.steps = 4;
  request.pictures.references = {some_picture(75, 90)};
  const auto one = drawn_flux3(flux3_with({}, {}, kFlux3Map), request);
  for (const Layout& layout : {Layout{.tp = 3}, Layout{.ring = 2}, Layout{.pp = 4}})
    expect_flux3_equal(drawn_flux3(flux3_with(layout, {}, kFlux3Map), request), one, 1);
}

TEST(Flux3Family, GuidesOnTwoRanksToTheSameBits) {
  const auto request = guided_flux3();
  const auto one = drawn_flux3(flux3_with(), request);
  const auto got = drawn_flux3(flux3_with({.cfg = 2}), request);
  EXPECT_TRUE(at::equal(got["latents_final"], one["latents_final"]));
  EXPECT_GT(flux3_error(one["latents_final"], drawn_flux3(flux3_with())["latents_final"]), 1e-3);
}

TEST(Flux3Family, DrawsPicturesOnTwoRanks) {
  auto request = guided_flux3();
  request.num_images = request.batch_size = 2;
  const auto one = drawn_flux3(flux3_with(), request);
  expect_flux3_equal(drawn_flux3(flux3_with({.dp = 2}), request), one, request.guidance.value());
}

}  // namespace braid::flux3_layouts_test
