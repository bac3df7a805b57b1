// Memory budgets: what is chosen for each, and what the choice really takes.
#include "pipeline/planner/memory_plan.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/thread.h"
#include "models/flux/model.h"
#include "models/flux/sharding.h"
#include "pipeline/memory/offload.h"
#include "pipeline/planner/costs/held.h"
#include "pipeline/planner/counted_parameters.h"
#include "pipeline/planner/planned.h"

namespace braid::memory_plan_test {

using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kGB = 1'000'000'000;

const PartTensors& tensors_of(const PlanJob& job, const std::string& folder) {
  for (const auto& part : job.family->description().parts)
    if (part.folder == folder) return job.tensors->of(part);
  throw std::out_of_range(folder);
}

const RankPlaces kOneGpu = {.grid = {}, .devices = {"cuda:0"}};

MemoryPlan plan_within(PlanJob job, double device, double host = 0,
                       const RankPlaces& place = kOneGpu) {
  job.memory.budget.device = std::int64_t(device * 1e9);
  job.memory.budget.host = std::int64_t(host * 1e9);
  return plan_memory(job, place);
}

// Remedies as refusal() prints them.
const char* const kFiles = " or 0";
const char* const kEightBits = " or 1";
const char* const kSmallPicture = " or 3";

std::string refusal(PlanJob job, double device, double host = 0) {
  try {
    plan_within(std::move(job), device, host);
  } catch (const DoesNotFit& e) {
    std::string text = e.what();
    for (const auto& help : e.help()) text += " or " + std::to_string(int(help.remedy));
    return text;
  }
  return "accepted";
}

TEST(Tensors, AreThoseThatTheModelsHave) {
  auto job = flux_dev();
  for (const int tp : {1, 2, 4}) {
    const auto bytes = [&](const PartTensors& part) {
      return pages_of(part, {.tp = tp}, {}).outside;
    };
    const FluxConfig config{.guidance_embeds = true};
    const auto flux = count_flux(config, SharedModulation::kYes).total(config).of_rank(tp);
    EXPECT_EQ(bytes(tensors_of(job, "transformer")), 2 * flux) << tp;
    const T5Config t5;
    const ClipConfig clip;
    const auto t5_table = t5.vocab_size * t5.hidden, clip_table = clip.vocab_size * clip.hidden;
    EXPECT_EQ(bytes(tensors_of(job, "text_encoder_2")), 2 * (count_t5(t5).of_rank(tp) - t5_table))
        << tp;
    EXPECT_EQ(bytes(tensors_of(job, "text_encoder")),
              2 * (count_clip(clip).of_rank(tp) - clip_table))
        << tp;
  }
  EXPECT_EQ(pages_of(tensors_of(job, "vae"), {}, {}).outside, 2 * count_vae_decoder(VaeConfig()));
  EXPECT_EQ(tensors_of(job, "transformer").lists, (std::vector<std::int64_t>{19, 38}));
  EXPECT_EQ(tensors_of(job, "text_encoder_2").num_blocks(), 24);
}

TEST(Tensors, OfALayerSplitAreThoseOfItsStage) {
  const auto job = flux_dev();
  for (const auto& run : {Share{0, 7}, Share{7, 20}, Share{27, 30}}) {
    const auto stage = stage_of(job.shape(), run);
    EXPECT_EQ(
        pages_of(tensors_of(job, "transformer"), {.begin = run.begin, .count = run.count}, {})
            .outside,
        2 * parameters_of(stage, {.guidance_embeds = true}, SharedModulation::kYes).of_rank(1));
  }
}

// The shapes say so: in bfloat16, including padding between tensors and pages.
TEST(Tensors, OfAStepAreNotThoseThatModulateBlocks) {
  const auto pages =
      pages_of(tensors_of(flux_dev(), "transformer"), {}, {.offload = OffloadMode::kBlock});
  const double h = 3072, head = 128;
  const double step =
      19 * 2 * (12 * h * h + 9 * h + 2 * head) + 38 * (12 * h * h + 8 * h + 2 * head);
  const double once = 19 * (12 * h * h + 12 * h) + 38 * (3 * h * h + 3 * h);
  EXPECT_NEAR(double(SlotUse(pages, {}).copied(PageUse::kRepeated).bytes), 2 * step, 1e6);
  EXPECT_NEAR(double(SlotUse(pages, {}).copied(PageUse::kOnce).bytes), 2 * once, 1e6);
  EXPECT_EQ(SlotUse(pages, {.resident = 57}).copied(PageUse::kRepeated).bytes, 0);
  EXPECT_NEAR(double(SlotUse(pages, {.resident = 57}).copied(PageUse::kOnce).bytes), 2 * once, 1e6);
}

struct Kept {
  Quantize quantize;
  OffloadMode mode;
  int blocks = 1, prefetch = 1, resident = 0, tp = 1;
  Share run = {0, 7};
};
std::ostream& operator<<(std::ostream& out, const Kept& k) {
  return out << int(k.quantize) << " " << int(k.mode) << " " << k.blocks << " " << k.prefetch << " "
             << k.resident << " " << k.tp << " " << k.run.begin << "+" << k.run.count;
}

class PredictedPages : public testing::TestWithParam<Kept> {};

// A small transformer is really loaded: slots and pages agree byte for byte.
TEST_P(PredictedPages, AreThoseOfALoad) {
  const auto& k = GetParam();
  const FluxConfig config{.num_double = 3,
                          .num_single = 4,
                          .num_heads = 4,
                          .text_width = 48,
                          .pooled_width = 40,
                          .guidance_embeds = true};
  PlanJob job{.family = make_flux_family({.flux = config}), .dtype = at::kFloat};
  job = surveyed(std::move(job));
  const Offload offload{
      .transformer = k.mode, .blocks = k.blocks, .prefetch = k.prefetch, .resident = k.resident};
  const auto predicted = pages_of(tensors_of(job, "transformer"),
                                  {.tp = k.tp, .begin = k.run.begin, .count = k.run.count},
                                  {.quantize = k.quantize, .offload = k.mode, .blocks = k.blocks});
  run_ranks({.size = k.tp}, [&](const Group& world) {
    OffloadedParts parts(offload, at::kCPU);
    const auto paging = parts.transformer();
    const auto w = Weights::synthetic(
        {.dtype = at::kFloat, .tensor_parallel = world, .quantize = k.quantize, .paging = paging},
        flux_sharding(config, SharedModulation::kYes));
    const Flux flux(config, w, ops::attention, BlockRange{k.run.begin, k.run.count});
    parts.finish();
    const auto stage = stage_of(job.shape(), {.begin = k.run.begin, .count = k.run.count});
    EXPECT_EQ(predict_transformer_bytes(job, {.tp = k.tp}, world.rank(), stage).modulations,
              flux.num_modulations() * job.steps * std::int64_t(sizeof(float)));
    EXPECT_EQ(paging.pages->page_bytes(), predicted.paged());
    EXPECT_EQ(paging.pages->slot_bytes(), SlotUse(predicted, offload).slot_bytes(SlotsOf::kDevice));
  });
}

INSTANTIATE_TEST_SUITE_P(
    Ways, PredictedPages,
    testing::Values(Kept{Quantize::kNone, OffloadMode::kBlock, 2, 2},
                    Kept{Quantize::kNone, OffloadMode::kBlock, 1, 1, 1, 1, {1, 5}},
                    Kept{Quantize::kInt8V1, OffloadMode::kLeaf, 1, 3},
                    Kept{Quantize::kInt8, OffloadMode::kBlock, 2, 1, 0, 4},
                    Kept{Quantize::kFloat8, OffloadMode::kBlock, 1, 1, 2, 2}));
INSTANTIATE_TEST_SUITE_P(
    SlowWays, PredictedPages,
    testing::Values(Kept{Quantize::kNone, OffloadMode::kBlock},
                    Kept{Quantize::kNone, OffloadMode::kBlock, 1, 1, 3},
                    Kept{Quantize::kNone, OffloadMode::kBlock, 2, 1, 2},
                    Kept{Quantize::kInt8, OffloadMode::kBlock, 3, 0},
                    Kept{Quantize::kNone, OffloadMode::kLeaf, 1, 1, 5},
                    Kept{Quantize::kNone, OffloadMode::kBlock, 1, 1, 2, 2},
                    Kept{Quantize::kInt8, OffloadMode::kLeaf, 1, 1, 0, 2},
                    Kept{Quantize::kFloat8, OffloadMode::kLeaf, 1, 2},
                    Kept{Quantize::kNone, OffloadMode::kBlock, 2, 1, 0, 1, {1, 3}},
                    Kept{Quantize::kNone, OffloadMode::kBlock, 1, 1, 0, 2, {4, 3}}));

TEST(MemoryPlan, KeepsAllWhereThereIsRoom) {
  const auto chosen = plan_within(flux_dev(), 48);
  EXPECT_EQ(chosen.memory.offload.transformer, OffloadMode::kNone);
  EXPECT_EQ(chosen.memory.offload.text, OffloadMode::kNone);
  EXPECT_EQ(chosen.tiling, VaeTiling::kAuto);
  EXPECT_FALSE(chosen.memory.budget.is_set());
}

// A copy per prompt is accepted before a copy per step.
TEST(MemoryPlan, TakesTheFastestThatFits) {
  const auto job = flux_dev();
  const auto text_pages = plan_within(job, 28).memory.offload;
  EXPECT_EQ(text_pages.transformer, OffloadMode::kNone);
  EXPECT_EQ(text_pages.text, OffloadMode::kBlock);
  int last = 58;
  double seconds = 0;
  for (const double memory : {24.0, 16.0, 12.0, 8.0, 6.0, 4.0}) {
    const auto chosen = plan_within(job, memory);
    EXPECT_LE(chosen.device_peak, std::int64_t(memory * 1e9)) << memory;
    const auto& o = chosen.memory.offload;
    EXPECT_EQ(o.transformer, OffloadMode::kBlock) << memory;
    EXPECT_LT(o.resident, last) << memory;
    EXPECT_GT(chosen.copy_seconds, seconds) << memory;
    EXPECT_EQ(chosen.memory.quantize, Quantize::kNone) << memory;
    last = o.resident;
    seconds = chosen.copy_seconds;
    // All but what is needed once per picture: each of the last two groups has a slot to itself.
    if (o.resident >= 55) continue;
    // one group more would not fit
    auto more = job;
    more.memory = chosen.memory;
    more.tiling = chosen.tiling;
    ++more.memory.offload.resident;
    EXPECT_GT(predict_bytes(more, {}, 0, whole_transformer(job.shape())).peak(),
              std::int64_t(memory * 1e9))
        << memory;
  }
}

// Prefetching fewer groups saves memory, but a number asked for must be kept.
TEST(MemoryPlan, CopiesFewerGroupsAheadUnlessTheirNumberIsGiven) {
  auto job = flux_dev();
  job.memory.offload.transformer = OffloadMode::kBlock;
  job.memory.offload.prefetch = 16;
  job.stated = {.transformer = true};
  EXPECT_EQ(plan_within(job, 6).memory.offload.prefetch, 0);
  job.stated.prefetch = true;
  EXPECT_THAT(refusal(job, 6), HasSubstr("does not fit"));
}

TEST(MemoryPlan, TakesEightBitsOnlyWhereNothingElseFitsAndTheyAreAllowed) {
  auto job = flux_dev();
  auto& budget = job.memory.budget;
  EXPECT_THAT(refusal(job, 6, 22), HasSubstr(kEightBits));
  budget.may_quantize = budget.may_quantize_text = true;
  EXPECT_EQ(plan_within(job, 6).memory.quantize, Quantize::kNone);  // the host has room for all
  const auto chosen = plan_within(job, 6, 22);
  EXPECT_EQ(chosen.memory.quantize, Quantize::kInt8);
  EXPECT_LE(chosen.host_peak, 22 * kGB);
  budget.may_quantize = false;
  EXPECT_THAT(refusal(job, 6, 22), HasSubstr("more"));
}

TEST(MemoryPlan, UsesFilesOnlyWhereTheHostNeedsThem) {
  auto job = flux_dev();
  job.memory.offload.folder = "pages";
  EXPECT_TRUE(plan_within(job, 6, 80).memory.offload.folder.empty());
  const auto chosen = plan_within(job, 6, 8);
  EXPECT_EQ(chosen.memory.offload.folder, "pages");
  EXPECT_LE(chosen.host_peak, 8 * kGB);
}

TEST(MemoryPlan, LeavesAloneWhatIsGiven) {
  auto job = flux_dev();
  auto& m = job.memory;
  m.offload.transformer = OffloadMode::kSequential;
  m.offload.text = OffloadMode::kModel;
  m.offload.prefetch = 3;
  job.stated = {.transformer = true, .text = true, .prefetch = true};
  job.tiling = VaeTiling::kOff;
  const auto chosen = plan_within(job, 40);
  EXPECT_EQ(chosen.memory.offload.transformer, OffloadMode::kSequential);
  EXPECT_EQ(chosen.memory.offload.text, OffloadMode::kModel);
  EXPECT_EQ(chosen.memory.offload.prefetch, 3);
  EXPECT_EQ(chosen.tiling, VaeTiling::kOff);
}

// Tiles change the picture a little, pages do not.
TEST(MemoryPlan, DecodesInTilesWhereNothingElseMakesRoom) {
  auto job = flux_dev();
  job.width = job.height = 1536;  // below the size that is tiled anyway
  for (const double memory : {40.0, 12.0, 5.0})
    EXPECT_EQ(plan_within(job, memory).tiling, VaeTiling::kAuto);
  EXPECT_EQ(plan_within(job, 2.6).tiling, VaeTiling::kOn);
  job.tiling = VaeTiling::kOff;
  EXPECT_THAT(refusal(job, 2.6), HasSubstr("needs at least"));
}

TEST(MemoryPlan, SaysHowMuchIsMissingAndWhatWouldHelp) {
  const auto job = flux_dev();
  const auto text = refusal(job, 1.2);
  EXPECT_THAT(text, HasSubstr("a picture of 1024x1024 does not fit 1.20 GB: it needs"));
  EXPECT_THAT(text, HasSubstr(kSmallPicture));
  EXPECT_THAT(refusal(job, 6, 10), HasSubstr(kFiles));
  auto with_files = job;
  with_files.memory.offload.folder = "pages";
  EXPECT_THAT(refusal(with_files, 1.2, 10), Not(HasSubstr(kFiles)));
}

TEST(MemoryPlan, CountsAllRanksOfADevice) {
  const auto job = flux_dev();
  const Degrees two{.tp = 2};
  const RankPlaces apart{.grid = two, .devices = {"cuda:0", "cuda:1"}};
  const RankPlaces together{.grid = two, .devices = {"cuda:0", "cuda:0"}};
  EXPECT_EQ(plan_within(job, 28, 0, apart).memory.offload.transformer, OffloadMode::kNone);
  EXPECT_EQ(plan_within(job, 20, 0, together).memory.offload.transformer, OffloadMode::kBlock);
  EXPECT_LE(plan_within(job, 20, 0, together).device_peak, 20 * kGB);
}

// A plan counts a process's own bytes as a budget does, whether or not it has pages.
TEST(MemoryPlan, OfACpuIsWhatAPlanOfItsLayoutNeeds) {
  auto job = flux_dev();
  job.is_on_host = true;
  const RankPlaces cpu{.grid = {}, .devices = {"cpu"}};
  const auto whole = plan_within(job, 48, 0, cpu);
  job.memory.offload.folder = "pages";
  const auto paged = plan_within(job, 8, 0, cpu);
  EXPECT_GT(paged.files, 0);
  for (const auto& chosen : {whole, paged}) {
    job.memory = chosen.memory;
    job.tiling = chosen.tiling;
    const auto bytes = predict_bytes(job, {}, 0, whole_transformer(job.shape()));
    EXPECT_EQ(needed_bytes(job, bytes), chosen.host_peak);
    EXPECT_GT(needed_bytes(job, bytes), bytes.peak() + kProcessBytes);
  }
}

// A round of pipeline parallelism has a picture for each stage.
TEST(MemoryPlan, CountsThePicturesOfARound) {
  auto job = flux_dev();
  job.is_on_host = true;
  job.num_pictures = 4;
  const RankPlaces stages{.grid = {.pp = 4}, .devices = {"cpu", "cpu", "cpu", "cpu"}};
  const auto of_four = plan_within(job, 100, 0, stages);
  job.num_pictures = 1;
  EXPECT_GT(of_four.device_peak, plan_within(job, 100, 0, stages).device_peak);
  job.num_pictures = 3;
  for (auto grid : {Degrees{.dp = 2, .pp = 2, .shares = {.dp = {2, 1}}},
                    Degrees{.dp = 2, .pp = 2, .shares = {.dp = {9, 1}}}})
    EXPECT_GT(plan_within(job, 100, 0, {.grid = grid, .devices = stages.devices}).device_peak, 0)
        << "a rank has no picture";
}

// Pages in the memory of a CPU would exist twice: only files help.
TEST(MemoryPlan, OfACpuIsOfTheProcess) {
  auto job = flux_dev();
  job.is_on_host = true;
  const RankPlaces cpu{.grid = {.tp = 2}, .devices = {"cpu", "cpu"}};
  EXPECT_EQ(plan_within(job, 48, 0, cpu).memory.offload.transformer, OffloadMode::kNone);
  auto with_folder = job;
  with_folder.memory.offload.folder = "pages";
  const auto chosen = plan_within(with_folder, 8, 0, cpu);
  EXPECT_EQ(chosen.memory.offload.folder, "pages");
  EXPECT_EQ(chosen.device_peak, chosen.host_peak);
  EXPECT_LE(chosen.device_peak, 8 * kGB);
  auto job_of_one = job;
  job_of_one.memory.budget.device = 8 * kGB;
  EXPECT_THROW(plan_memory(job_of_one, cpu), InputError);
}

TEST(MemoryPlan, TakesFilesOnlyWhereNothingElseFits) {
  auto job = flux_dev();
  const RankPlaces place{.grid = {}, .devices = {"cuda:0"}};
  const auto within = [&](std::int64_t host) {
    job.memory.budget = {.device = 8'000'000'000, .host = host};
    return plan_memory_or_files(job, place);
  };
  EXPECT_TRUE(within(80'000'000'000).memory.offload.folder.empty());
  job.memory.budget.host = 8'000'000'000;
  EXPECT_THROW((void)plan_memory(job, place), DoesNotFit);
  const auto in_files = within(8'000'000'000);
  EXPECT_EQ(in_files.memory.offload.folder, kFolderToMake);
  EXPECT_GT(in_files.files, 0);
  job.memory.offload.folder = "own";
  EXPECT_EQ(within(8'000'000'000).memory.offload.folder, "own");
  EXPECT_THROW((void)within(1'000'000), DoesNotFit);
}

}  // namespace braid::memory_plan_test
