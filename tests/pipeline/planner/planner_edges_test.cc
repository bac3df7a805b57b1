// Plans at their edges: memory to the byte, the last token, head, block and picture, and surveys
// against the files that they foretell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "base/error.h"
#include "pipeline/families/flux2/flux2.h"
#include "pipeline/files/found_files.h"
#include "pipeline/planner/memory_plan.h"
#include "pipeline/planner/planned.h"

namespace braid::planner_edges_test {

using testing::HasSubstr;
using testing::Optional;

// -------------------------------------------------------------------------------------- memory

// A twentieth of a device's memory is its driver's.
double memory_with(double usable) { return usable / 0.95; }

PlannedLayout plan_with(const PlanJob& job, const Degrees& grid, double usable) {
  auto machine = machine_of(std::to_string(grid.product()) + "xh100");
  for (auto& device : machine.devices) device.memory = memory_with(usable);
  return plan_layout(job, machine, grid);
}

// The planner need not choose whether a recorded step is dropped.
PlanJob flux_dev_without_records() {
  auto job = flux_dev();
  job.memory.recorded_step = RecordedStep::kDropped;
  return job;
}

TEST(Memory, FitsALayoutToTheByte) {
  const auto job = flux_dev_without_records();
  for (const auto& grid :
       {Degrees{}, Degrees{.tp = 2}, Degrees{.ring = 3}, Degrees{.ulysses = 2}}) {
    const auto roomy = plan_with(job, grid, 1e12);
    const auto needs = double(std::max(roomy.first_rank.peak(), roomy.largest_other.peak()));
    EXPECT_EQ(plan_with(job, grid, needs + 0.1).obstacle, Obstacle::kNone) << layout_name(grid);
    EXPECT_EQ(plan_with(job, grid, needs - 0.1).obstacle, Obstacle::kMemory) << layout_name(grid);
  }
}

const RankPlaces kGpu = {.grid = {}, .devices = {"cuda:0"}};

MemoryPlan plan_within(PlanJob job, const Budget& budget, const RankPlaces& place = kGpu) {
  job.memory.budget = budget;
  return plan_memory(job, place);
}

// A choice is kept as long as its own peak is within the budget, and not a byte longer.
TEST(Budgets, AreKeptToTheByte) {
  const auto job = flux_dev_without_records();
  const auto all_on_device = plan_within(job, {.device = 48'000'000'000});
  const auto exact = plan_within(job, {.device = all_on_device.device_peak});
  EXPECT_EQ(exact.device_peak, all_on_device.device_peak);
  EXPECT_EQ(exact.copy_seconds, 0);
  const auto short_of_one = plan_within(job, {.device = all_on_device.device_peak - 1});
  EXPECT_GT(short_of_one.copy_seconds, 0);
  EXPECT_LT(short_of_one.device_peak, all_on_device.device_peak);
}

TEST(Budgets, OfTheHostAreKeptToTheByte) {
  auto job = flux_dev();
  job.memory.offload.folder = "pages";
  const auto in_memory = plan_within(job, {.device = 8'000'000'000, .host = 80'000'000'000});
  ASSERT_TRUE(in_memory.memory.offload.folder.empty());
  const Budget exact{.device = 8'000'000'000, .host = in_memory.host_peak};
  EXPECT_TRUE(plan_within(job, exact).memory.offload.folder.empty());
  const Budget short_of_one{.device = 8'000'000'000, .host = in_memory.host_peak - 1};
  const auto other = plan_within(job, short_of_one);
  EXPECT_LT(other.host_peak, in_memory.host_peak);
}

// The last two groups have a slot each.
TEST(Budgets, LetAsManyGroupsStayAsFitToTheByte) {
  auto job = flux_dev();
  auto& o = job.memory.offload;
  o.transformer = OffloadMode::kBlock;
  o.text = o.vae = OffloadMode::kBlock;
  job.stated = {.transformer = true, .text = true, .vae = true, .prefetch = true};
  for (const int resident : {1, 20, 54}) {
    o.resident = resident;
    const auto needs = predict_bytes(job, {}, 0, whole_transformer(job.shape())).peak();
    EXPECT_EQ(plan_within(job, {.device = needs}).memory.offload.resident, resident);
    EXPECT_EQ(plan_within(job, {.device = needs - 1}).memory.offload.resident, resident - 1);
  }
}

// Ranks that are threads share a process, and with it what is locked and held on the host.
TEST(Budgets, CountTheHostOfEveryRankOfAProcess) {
  auto job = flux_dev();
  job.memory.offload.transformer = OffloadMode::kBlock;
  job.memory.offload.pin = Pin::kAlways;
  job.stated = {.transformer = true, .resident = true};
  RankPlaces place{.grid = {.ring = 2}, .devices = {"cuda:0", "cuda:1"}};
  const Budget budget{.device = 40'000'000'000};
  const auto threads = plan_within(job, budget, place);
  place.are_threads = false;
  const auto processes = plan_within(job, budget, place);
  const auto rank = [&](int index) {
    auto kept = job;
    kept.memory = processes.memory;
    return predict_bytes(kept, place.grid, index, whole_transformer(job.shape()));
  };
  EXPECT_GT(rank(1).locked, 0);
  EXPECT_EQ(processes.locked, std::max(rank(0).locked, rank(1).locked));
  EXPECT_EQ(threads.locked, rank(0).locked + rank(1).locked);
  EXPECT_GT(threads.host_peak, processes.host_peak);
}

// ------------------------------------------------------------------------------------ the last one

std::string refusal(const PlanJob& job, const Degrees& grid) {
  const auto refused = refused_layout(job, grid);
  return refused ? refused->reason : "";
}

TEST(Layouts, MayTakeTheLastOfEverythingButNoMore) {
  auto job = flux_dev();
  job.width = job.height = 64;  // 4 x 4 tokens
  EXPECT_EQ(refusal(job, {.ring = 16}), "");
  EXPECT_THAT(refusal(job, {.ring = 17}),
              HasSubstr("17 leaves a rank without an image token, there are 16"));
  job.text_tokens = 15;
  EXPECT_THAT(refusal(job, {.ring = 4, .ulysses = 4}),
              HasSubstr("leaves a rank without a text token, there are 15"));
  EXPECT_EQ(refusal(job, {.ring = 5, .ulysses = 3}), "");
  job.pictures.references = {40, 14};
  EXPECT_EQ(refusal(job, {.ring = 7, .ulysses = 2}), "");
  EXPECT_THAT(refusal(job, {.ring = 5, .ulysses = 3}),
              HasSubstr("leaves a rank without a reference token, there are 14"));
  EXPECT_THAT(refusal(job, {.ring = 2, .shares = {.ring = {40, 1}}}),
              HasSubstr("leaves a rank without"));
  job.pictures = {};
  EXPECT_EQ(refusal(job, {.pp = 57}), "");
  EXPECT_THAT(refusal(job, {.pp = 58}),
              HasSubstr("58 leaves a rank without a block, there are 57"));
  EXPECT_EQ(refusal(job, {.tp = 24}), "");
  EXPECT_THAT(refusal(job, {.tp = 25}), HasSubstr("tp 25 leaves a rank without a head"));
  EXPECT_THAT(refusal(job, {.tp = 2, .shares = {.tp = {99, 1}}}),
              HasSubstr("tp 2 (99:1) leaves a rank without a head"));
  EXPECT_EQ(refusal(job, {.tp = 2, .shares = {.tp = {23, 1}}}), "");
  EXPECT_THAT(refusal(job, {.ring = 2, .shares = {.ring = {99, 1}}}),
              HasSubstr("2 (99:1) leaves a rank without an image token, there are 16"));
  EXPECT_THAT(refusal(job, {.pp = 2, .shares = {.pp = {999, 1}}}),
              HasSubstr("2 (999:1) leaves a rank without a block, there are 57"));
  job.num_pictures = 3;
  EXPECT_EQ(refusal(job, {.dp = 3}), "");
  EXPECT_THAT(refusal(job, {.dp = 4}),
              HasSubstr("dp 4 leaves a rank without a picture, there are 3"));
  EXPECT_THAT(refusal(job, {.cfg = 2}), HasSubstr("there is 1: give a negative prompt"));
}

// Its text model has 32 heads, which share 8 of keys and values: those are copied.
TEST(Layouts, OfSharedTextEncodersMayHaveMoreRanksThanHeadsOfKeys) {
  auto job = surveyed(named_job("klein-9b-kv"));
  job.layout.text = TextRanks::kShared;
  EXPECT_EQ(refusal(job, {.tp = 16}), "");
  EXPECT_EQ(refusal(job, {.tp = 32}), "");
}

// 24 heads share 6 of keys and values: a rank has those that its heads need.
TEST(Layouts, OfSharedTextEncodersMayCutAcrossHeadsOfKeys) {
  Flux2Configs configs;
  configs.text.num_heads = 24;
  configs.text.num_kv_heads = 6;
  PlanJob job{.family = make_flux2_family(configs, {}, {})};
  EXPECT_EQ(refusal(job, {.tp = 4}), "") << "the first rank encodes alone";
  job.layout.text = TextRanks::kShared;
  for (const int tp : {2, 3, 4, 6, 8, 12, 24}) EXPECT_EQ(refusal(job, {.tp = tp}), "") << tp;
}

// A rank without a head is refused by the tables, too, whoever loads a part.
TEST(Shardings, ServeAsManyRanksAsThereAreHeads) {
  for (const auto name : {"flux1-dev", "flux2-dev", "z-image", "joyai-image-edit", "qwen-image",
                          "qwen-image-2.1", "flux3-klein", "krea-2-turbo"}) {
    const auto job = surveyed(named_job(name));
    for (const auto& part : job.family->description().parts) {
      if (!part.sharding || part.num_heads == 0) continue;
      const auto& tensors = job.tensors->of(part);
      const auto heads = int(part.num_heads);
      for (const int ranks : {2, 3, heads})
        EXPECT_EQ(why_not_shared(tensors, ranks), std::nullopt) << name << ", " << part.label;
      EXPECT_THAT(why_not_shared(tensors, heads + 1),
                  Optional(HasSubstr(text_of("none for rank ", heads))))
          << name << ", " << part.label;
    }
  }
}

// Z-Image's heads need not divide evenly, but no rank may be without one.
TEST(Layouts, OfUnevenHeadsMayHaveARankForEach) {
  const auto job = surveyed(named_job("z-image"));
  EXPECT_EQ(job.shape().num_heads, 30);
  for (const int tp : {3, 7, 29, 30}) EXPECT_EQ(refusal(job, {.tp = tp}), "") << tp;
  EXPECT_THAT(refusal(job, {.tp = 31}), HasSubstr("tp 31 leaves a rank without a head"));
}

// 5 pictures, 2 at once: 3 rounds of the steps.
TEST(Layouts, TakeAWholeRoundForTheLastPicture) {
  auto job = flux_dev();
  job.num_pictures = 5;
  job.batch_size = 2;
  const auto layout = planned(job, "h200", {});
  EXPECT_DOUBLE_EQ(layout.seconds_per_picture, job.steps * layout.step.total() * 3 / 5);
}

// ------------------------------------------------------------------------------------- devices

TEST(Devices, AreAThousandAndTwentyFourAtMost) {
  EXPECT_EQ(devices_named("--devices", "1000xl4,24xh100").size(), 1024u);
  EXPECT_THROW(devices_named("--devices", "1000xl4,25xh100"), InputError);
  EXPECT_THROW(devices_named("--devices", "1025xl4"), InputError);
  EXPECT_THROW(devices_named("--devices", "0xl4"), InputError);
}

TEST(AmountsOfMemory, AreInTheUnitsTheyName) {
  EXPECT_EQ(bytes_named("--memory", "16GB"), 16e9);
  EXPECT_EQ(bytes_named("--memory", "1.5GiB"), 1.5 * 1024 * 1024 * 1024);
  EXPECT_EQ(bytes_named("--memory", "16MB"), 16e6);
  EXPECT_EQ(bytes_named("--memory", "2MiB"), 2.0 * 1024 * 1024);
  for (const char* text : {"6G", "6g", "6gb", "6 GB", "6Gb", "6000MB", "6e6K", "0.006T"})
    EXPECT_DOUBLE_EQ(bytes_named("--memory", text), 6e9) << text;
  for (const char* text : {"6GiB", "6gib", "6 Gi", "6144MiB"})
    EXPECT_EQ(bytes_named("--memory", text), 6.0 * 1024 * 1024 * 1024) << text;
  for (const char* text : {"16", "GB", "-1GB", "0GB", "1e999GB", "nanGB", "16 G B", "6 GBit", ""})
    EXPECT_THROW(bytes_named("--memory", text), InputError) << text;
}

// -------------------------------------------------------------------------------------- surveys

const std::filesystem::path kData = std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity";

// A part of a model's files, and a pattern of those tensors that no run keeps in memory: tables,
// which stay in the files, the encoder's side of the autoencoder and layers behind the last that is
// asked for.
struct PartOfFiles {
  const char *model, *folder, *not_kept;
};
const char* const kEncoders = "(encoder|quant_conv)\\..*";
const PartOfFiles kPartsOfFiles[] = {
    {"basic", "transformer", ""},
    {"basic", "text_encoder", ".*token_embedding.*"},
    {"basic", "text_encoder_2", "shared.*"},
    {"basic", "vae", kEncoders},
    {"klein", "transformer", ""},
    {"klein", "text_encoder", "model\\.(embed_tokens|norm|layers\\.27)\\..*"},
    {"klein", "vae", "(encoder|quant_conv)\\..*|bn\\.num_batches_tracked"},
    {"zimage-turbo", "transformer", ""},
    {"zimage-turbo", "text_encoder", "(embed_tokens|norm|layers\\.3)\\..*"},
    {"zimage-turbo", "vae", kEncoders}};

TEST(Surveys, CountTheBytesThatTheFilesHold) {
  for (const auto& [model, folder, not_kept] : kPartsOfFiles) {
    const auto files = find_model({.model = kData / model / "model"}).files;
    const auto job = surveyed(job_of_family(open_family(files)), &files);
    std::int64_t stored = 0;
    const auto checkpoint = files.open(folder);
    for (const auto& [name, tensor] : checkpoint.tensors())
      if (!std::regex_match(name, std::regex(not_kept))) stored += std::int64_t(tensor.entry.size);
    std::int64_t foretold = 0;
    for (const auto& part : job.family->description().parts)
      if (part.folder == folder)
        for (const auto& tensor : job.tensors->of(part).tensors)
          foretold += numbers_of(tensor, 1) * tensor.element_bytes();
    EXPECT_EQ(foretold, stored) << model << " " << folder;
  }
}

}  // namespace braid::planner_edges_test
