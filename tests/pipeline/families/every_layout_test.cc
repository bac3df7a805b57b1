// The small model of each family under every layout: against one rank, and against predictions.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "pipeline/deployment/degrees.h"
#include "pipeline/files/found_files.h"
#include "pipeline/proofs/verify.h"
#include "predicted.h"
#include "small_models.h"

namespace braid::every_layout_test {

struct LayoutOfModel {
  const SmallModel* model;
  const char* name;
  Layout layout;

  PipelineOptions options() const { return model->with(layout); }
};

class EveryLayout : public testing::TestWithParam<LayoutOfModel> {
 protected:
  // Drawn by one rank: once for the tests of a process.
  static const Drawn& one_rank(const SmallModel& model, const Request& request) {
    static std::map<const Request*, Drawn> all;
    auto& drawn = all[&request];
    if (drawn.pictures.empty()) drawn = model.drawn(model.with(), request);
    return drawn;
  }
  static void expect_as_one_rank(const Request& request, double magnified) {
    const auto& model = *GetParam().model;
    expect_as_drawn(model.drawn(GetParam().options(), request), one_rank(model, request),
                    magnified);
  }
};

TEST_P(EveryLayout, EqualsOneRank) { expect_as_one_rank(GetParam().model->plain, 1); }

TEST_P(EveryLayout, EqualsOneRankWithBranchesOfUnequalLengths) {
  expect_as_one_rank(GetParam().model->guided, GetParam().model->magnified);
}

TEST_P(EveryLayout, IsProven) {
  const auto verdict = verify(deploy(GetParam().options()), {.probe = GetParam().model->probe});
  EXPECT_EQ(verdict.first_divergent(), nullptr);
  const auto num_watched = std::ranges::count_if(verdict.blocks, [](const VerifiedBlock& block) {
    return block.where.find(" attention") == block.where.npos;
  });
  EXPECT_EQ(std::size_t(num_watched), GetParam().model->num_watched);
}

TEST_P(EveryLayout, MovesAndReadsWhatIsPredicted) {
  const auto options = GetParam().options();
  const auto degrees = degrees_of(GetParam().layout);
  const auto& model = *GetParam().model;
  const Engine engine(options, {});
  for (const bool has_pictures : {false, true}) {
    auto request = model.plain;
    if (has_pictures && model.guided.pictures.is_empty()) break;
    if (has_pictures) request.pictures = model.guided.pictures;
    const auto facts = engine.generate(request, {}, {.record = RecordTensors::kYes}).facts;
    request.max_sequence_length = int(facts.recording.at("prompt_embeds").size(1));
    const auto job = job_of(deploy(options), request);
    expect_predicted_traffic(job, degrees, facts);
    if (GetParam().layout.text == TextRanks::kShared) continue;  // the last rank has text, too
    EXPECT_EQ(facts.load.bytes_read.back().all,
              stored_bytes_of_last_rank(job, find_model(options).files, degrees));
  }
}

struct NamedLayout {
  const char* name;
  Layout layout;
};

std::vector<LayoutOfModel> of(const SmallModel& model, const std::vector<NamedLayout>& layouts) {
  std::vector<LayoutOfModel> all;
  for (const auto& [name, layout] : layouts)
    all.push_back({.model = &model, .name = name, .layout = layout});
  return all;
}

// Those that only ./check --slow takes: these for each family, and some of its own.
std::vector<LayoutOfModel> more_of(const SmallModel& model, std::vector<NamedLayout> layouts) {
  layouts.insert(layouts.end(), {{"Tp2", {.tp = 2}},
                                 {"Ring2Gathered", {.ring = 2, .ring_form = RingForm::kGather}},
                                 {"Ulysses2", {.ulysses = 2}},
                                 {"Ring2Ulysses3", {.ring = 2, .ulysses = 3}},
                                 {"LayerSplit2", {.pp = 2}},
                                 {"Tp2LayerSplit2", {.tp = 2, .pp = 2}},
                                 {"Ring2LayerSplit2", {.ring = 2, .pp = 2}}});
  return of(model, layouts);
}

const auto kNameOf = [](const auto& info) { return std::string(info.param.name); };
const NamedLayout kTp2Text{"Tp2Text", {.tp = 2, .text = TextRanks::kShared}};
const NamedLayout kTp4{"Tp4", {.tp = 4}}, kRing3{"Ring3", {.ring = 3}},
    kTp2Ulysses2{"Tp2Ulysses2", {.tp = 2, .ulysses = 2}},
    kTp4WholeModulation{"Tp4WholeModulation", {.tp = 4, .modulation = SharedModulation::kNo}};

INSTANTIATE_TEST_SUITE_P(ZImage, EveryLayout, testing::ValuesIn(of(kZImage, {kTp2Text, kRing3})),
                         kNameOf);
INSTANTIATE_TEST_SUITE_P(SlowZImage, EveryLayout,
                         testing::ValuesIn(more_of(kZImage,
                                                   {kTp4,  // 2 2 1 1 heads
                                                    {"Tp4Ulysses2", {.tp = 4, .ulysses = 2}},
                                                    {"LayerSplit4", {.pp = 4}},
                                                    kTp2Ulysses2,
                                                    {"Tp3", {.tp = 3}},
                                                    {"Ulysses4", {.ulysses = 4}},
                                                    {"Tp2LayerSplit3", {.tp = 2, .pp = 3}}})),
                         kNameOf);

// Ranks of Ulysses5 repeat some of the text's heads of keys. The last stage of three only fuses the
// text. Of 6 heads of keys, ranks of Tp4 need 1 1/2, which come as 3, of Tp8 3/4.
INSTANTIATE_TEST_SUITE_P(Krea2, EveryLayout,
                         testing::ValuesIn(of(kKrea2, {kTp4, {"Ulysses5", {.ulysses = 5}}})),
                         kNameOf);
INSTANTIATE_TEST_SUITE_P(
    SlowKrea2, EveryLayout,
    testing::ValuesIn(more_of(kKrea2, {{"Tp4Ulysses2", {.tp = 4, .ulysses = 2}},
                                       kTp2Text,
                                       kRing3,
                                       {"LayerSplit3", {.pp = 3}},
                                       {"Tp3", {.tp = 3}},
                                       {"Tp6", {.tp = 6}},
                                       {"Tp8", {.tp = 8}},
                                       {"Tp8WholeModulation",
                                        {.tp = 8, .modulation = SharedModulation::kNo}}})),
    kNameOf);

INSTANTIATE_TEST_SUITE_P(QwenImage, EveryLayout,
                         testing::ValuesIn(of(kQwenImage, {kTp2Ulysses2, kRing3})), kNameOf);
INSTANTIATE_TEST_SUITE_P(SlowQwenImage, EveryLayout,
                         testing::ValuesIn(more_of(kQwenImage,
                                                   {kTp4, kTp2Text, kTp4WholeModulation})),
                         kNameOf);

INSTANTIATE_TEST_SUITE_P(Qwen21, EveryLayout,
                         testing::ValuesIn(of(kQwen21, {kTp2Text, {"LayerSplit2", {.pp = 2}}})),
                         kNameOf);
INSTANTIATE_TEST_SUITE_P(SlowQwen21, EveryLayout,
                         testing::ValuesIn(more_of(kQwen21,
                                                   {kTp4,
                                                    kRing3,
                                                    kTp2Ulysses2,
                                                    kTp4WholeModulation,
                                                    {"Ring2Ulysses4", {.ring = 2, .ulysses = 4}}})),
                         kNameOf);

INSTANTIATE_TEST_SUITE_P(Flux3, EveryLayout,
                         testing::ValuesIn(of(kFlux3, {kTp2Ulysses2, {"LayerSplit5", {.pp = 5}}})),
                         kNameOf);
INSTANTIATE_TEST_SUITE_P(
    SlowFlux3, EveryLayout,
    testing::ValuesIn(more_of(
        kFlux3, {kTp4, kTp2Text, kRing3, kTp4WholeModulation, {"Ulysses3", {.ulysses = 3}}})),
    kNameOf);

}  // namespace braid::every_layout_test
