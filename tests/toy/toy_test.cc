// All that Braid does with a model, with a family that it has never heard of: what is here is what
// a new family needs, and the library is not changed for it.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/print/info/model_info.h"
#include "base/error.h"
#include "made_toy.h"
#include "named_layout.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/deployment/degrees.h"
#include "pipeline/engine/engine.h"
#include "pipeline/files/found_files.h"
#include "pipeline/planner/planner.h"
#include "pipeline/planner/stage_of_rank.h"
#include "pipeline/planner/traffic_text.h"
#include "pipeline/proofs/bench.h"
#include "pipeline/proofs/verify.h"

namespace braid::toy::toy_test {

using testing::Contains;
using testing::HasSubstr;

const Request kRequest{.prompts = {"a blue star"}, .seed = 5};

const MadeToy& made() {
  static const MadeToy toy;
  return toy;
}

PipelineOptions options_with(const Layout& layout = {}, const Memory& memory = {}) {
  return {.model = made().model(), .dtype = Dtype::kFloat32, .layout = layout, .memory = memory};
}

std::vector<std::uint8_t> drawn(const PipelineOptions& options, const Request& request = kRequest) {
  return Engine(options, {}).generate(request, {}).pictures.front().rgb;
}

double largest_difference(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(double(a[i]) - double(b[i])));
  return largest;
}

TEST(ToyFamily, IsDrawn) {
  const auto picture = Engine(options_with(), {}).generate(kRequest, {}).pictures.front();
  EXPECT_EQ(picture.width, 64);
  EXPECT_EQ(picture.height, 64);
  auto other = kRequest;
  other.prompts = {"a red circle"};
  EXPECT_GT(largest_difference(picture.rgb, drawn(options_with(), other)), 0);
  other = kRequest;
  other.width = 77;  // 72: a latent is a token, so that sizes are multiples of 8
  EXPECT_EQ(Engine(options_with(), {}).generate(other, {}).pictures.front().width, 72);
}

const NamedLayout kLayouts[] = {{"Tp2", {.tp = 2}},
                                {"Ring3", {.ring = 3}},
                                {"Ring2Gathered", {.ring = 2, .ring_form = RingForm::kGather}},
                                {"Ulysses2", {.ulysses = 2}},
                                {"Ulysses4", {.ulysses = 4}},  // 2 2 1 1 heads, 2 of keys
                                {"Ring2Ulysses3", {.ring = 2, .ulysses = 3}},
                                {"LayerSplit3", {.pp = 3}},
                                {"Tp2Ulysses2", {.tp = 2, .ulysses = 2}},
                                {"Tp2LayerSplit2", {.tp = 2, .pp = 2}}};

const NamedLayout kProvenLayouts[] = {
    {"Cfg2", {.cfg = 2}}, {"Dp2", {.dp = 2}}, {"Cfg2Dp2Ring2", {.ring = 2, .cfg = 2, .dp = 2}}};

class ToyLayouts : public testing::TestWithParam<NamedLayout> {};
INSTANTIATE_TEST_SUITE_P(All, ToyLayouts, testing::ValuesIn(kLayouts), name_of_layout);

class ToyLayoutsProven : public ToyLayouts {};
INSTANTIATE_TEST_SUITE_P(All, ToyLayoutsProven, testing::ValuesIn(kLayouts), name_of_layout);

TEST_P(ToyLayoutsProven, AreProven) {
  const auto& layout = GetParam().layout;
  const auto verdict = verify(deploy(options_with(layout)));
  // Attention has places of its own, in all blocks, where ranks share tokens.
  const auto num_places = layout.ring * layout.ulysses > 1 ? 9 : 5;
  EXPECT_EQ(verdict.blocks.size(), std::size_t(num_places * layout.cfg * layout.dp));
  EXPECT_EQ(verdict.first_divergent(), nullptr);
}

INSTANTIATE_TEST_SUITE_P(OfBranchesAndPictures, ToyLayoutsProven, testing::ValuesIn(kProvenLayouts),
                         name_of_layout);

TEST_P(ToyLayouts, MoveAndReadWhatIsPredicted) {
  const auto options = options_with(GetParam().layout);
  const Engine engine(options, {});
  const auto facts = engine.generate(kRequest, {}).facts;
  auto job = job_of(deploy(options), kRequest);
  const auto degrees = degrees_of(GetParam().layout);
  const auto stage = [&](int rank) { return stage_of_rank(job, degrees, rank); };
  EXPECT_EQ(text_of_traffic(facts.step_traffic),
            text_of_traffic(predict_traffic(job, degrees, 0, stage(0))));
  // The last rank has no text encoder.
  const auto files = find_model(options).files;
  const int last = degrees.product() - 1;
  const auto stored_bytes = [&](const Part& part, const Stage& held, int ranks) {
    return numbers_in(job, part, held, ranks) *
           std::int64_t(c10::elementSize(files.open(part.folder).dtype()));
  };
  const auto& family = *job.family;
  EXPECT_EQ(facts.load.bytes_read.back().all,
            stored_bytes(family.part(Part::Role::kDenoiser), stage(last), degrees.tp) +
                stored_bytes(family.part(Part::Role::kDecoder), {.is_first = true}, 1));
}

TEST(ToyFamily, IsGuidedOnTwoRanks) {
  auto guided = kRequest;
  guided.negative_prompt = "a green square";
  guided.true_cfg = 3;
  auto one_thread = options_with();  // as each of two ranks has
  one_thread.threads = 1;
  const auto one = drawn(one_thread, guided);
  EXPECT_GT(largest_difference(one, drawn(options_with())), 0);
  EXPECT_EQ(one, drawn(options_with({.cfg = 2}), guided));
}

TEST(ToyFamily, PlansItsLayoutsAndRefusesWhatItsHeadsForbid) {
  const auto job = job_of(deploy(options_with()), kRequest);
  const auto devices = devices_named("", "3xh100");
  const auto layouts = plan_layouts(job, {devices, link_of(devices), link_of(devices)});
  std::vector<std::string> reasons;
  for (const auto& layout : layouts) reasons.push_back(layout.reason);
  EXPECT_TRUE(layouts.front().fits());
  EXPECT_THAT(reasons, Contains("tp 3 leaves a rank without a head: the transformer has 2"));
  EXPECT_THROW(Engine(options_with({.tp = 3}), {}), InputError);
}

TEST(ToyFamily, IsTimedFromFilesAndByName) {
  const auto of_files = bench(deploy(options_with({.tp = 2})), {.runs = 1});
  EXPECT_EQ(of_files.num_ranks, 2);
  EXPECT_EQ(of_files.tokens, 64 + 12);
  const auto named = bench(deploy({.synthetic = "toy-1", .blocks = {2}}),
                           {.probe = {.width = 64, .height = 32}, .runs = 1});
  EXPECT_EQ(named.width, 64);
}

TEST(ToyFamily, KeepsItsBitsWhereverItsWeightsAre) {
  const auto resident = drawn(options_with());
  for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kLeaf})
    EXPECT_EQ(resident, drawn(options_with(
                            {}, {.offload = {.transformer = mode, .text = mode, .vae = mode}})))
        << int(mode);
}

TEST(ToyFamily, IsConvertedToTheWeightsThatItsQuantizationHas) {
  const Memory int8{.quantize = Quantize::kInt8, .quantize_text = Quantize::kInt8};
  const auto quantized = drawn(options_with({}, int8));
  EXPECT_GT(largest_difference(quantized, drawn(options_with())), 0);
  const auto out = made().model().string() + "-int8";
  convert({.model = made().model(), .out = out, .dtype = Dtype::kFloat32, .memory = int8});
  auto converted = options_with();
  converted.model = out;
  EXPECT_EQ(quantized, drawn(converted));
  std::filesystem::remove_all(out);
}

TEST(ToyFamily, IsDescribed) {
  const auto info = model_info(deploy(options_with()));
  EXPECT_EQ(info["family"], "Toy");
  EXPECT_EQ(info["parts"].size(), 3u);
  EXPECT_GT(info["parts"]["transformer"]["parameters"].get<std::int64_t>(), 10'000);
}

TEST(ToyFamily, IsRefusedWhereItsPartsDoNotFit) {
  const MadeToy broken;
  write_file(broken.model() / "transformer/config.json", R"({"num_blocks": 3})");
  auto options = options_with();
  options.model = broken.model();
  try {
    (void)Engine(options, {});
    FAIL();
  } catch (const InputError& e) {
    EXPECT_THAT(e.what(), HasSubstr("that the model does not have"));
  }
}

}  // namespace braid::toy::toy_test
