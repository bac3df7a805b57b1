// What a plan says a rank of FLUX.1-dev holds, against formulas of its sizes.
#include <gtest/gtest.h>

#include "pipeline/planner/costs/held.h"
#include "pipeline/planner/counted_parameters.h"
#include "pipeline/planner/planned.h"
#include "weights/upload.h"

namespace braid::planned_bytes_test {

constexpr std::int64_t kHidden = 3072, kTokens = 4096 + 512, kElement = 2;

RankBytes bytes_of(const PlanJob& job, const Degrees& grid = {}, int rank = 0) {
  return predict_bytes(job, grid, rank, whole_transformer(job.shape()));
}

// A ring's rank holds its keys and values, those that it attends to and those that arrive, and two
// sums in float32: of all keys so far, and of the current ones. With gathered keys it holds its own
// and what it sends of them, and all as they arrive and joined.
TEST(PlannedBytes, OfARingAreKeysOnTheirWayAndTwoSums) {
  auto job = flux_dev();
  const auto of_tokens = [](std::int64_t tokens) { return 2 * kHidden * tokens * kElement; };
  EXPECT_EQ(bytes_of(job).keys_values, of_tokens(kTokens));
  EXPECT_EQ(bytes_of(job, {.ring = 2}).keys_values,
            3 * of_tokens(kTokens / 2) + 2 * kHidden * kTokens / 2 * 4);
  job.layout.ring_form = RingForm::kGather;
  EXPECT_EQ(bytes_of(job, {.ring = 2}).keys_values,
            2 * (of_tokens(kTokens / 2) + of_tokens(kTokens)));
}

// A tensor parallel rank holds a share that each other rank sent and the result, of native sums the
// result alone.
TEST(PlannedBytes, OfASumAreWhatItReceivesAndTheResult) {
  auto job = flux_dev();
  const auto staging = [&](int ranks) { return bytes_of(job, {.tp = ranks}).staging; };
  constexpr auto kResult = kTokens * kHidden * kElement;
  EXPECT_EQ(staging(4), kResult + 3 * kResult / 4);
  job.layout.collectives = Collectives::kNative;
  EXPECT_EQ(staging(4), kResult);
  EXPECT_EQ(staging(1), 0);
}

PlanJob with_pages(const Offload& offload) {
  auto job = flux_dev();
  job.memory.offload = offload;
  return job;
}

TEST(PlannedBytes, ThatAreLockedAreThoseCopiedFrom) {
  Offload offload{.transformer = OffloadMode::kBlock, .resident = 10};
  const auto always = bytes_of(with_pages(offload));
  EXPECT_EQ(always.locked, always.pages - always.resident_pages);
  offload.pin = Pin::kOnTheFly;
  const auto on_the_fly = bytes_of(with_pages(offload));
  EXPECT_EQ(on_the_fly.locked, on_the_fly.slots - on_the_fly.resident_pages);
  EXPECT_LT(on_the_fly.locked, always.locked);
  offload.pin = Pin::kNever;
  EXPECT_EQ(bytes_of(with_pages(offload)).locked, 0);
  offload.folder = "pages";  // files are read into locked staging, unless nothing may be locked
  EXPECT_EQ(bytes_of(with_pages(offload)).locked, 0);
  offload.pin = Pin::kAlways;
  const auto staged = bytes_of(with_pages(offload));
  EXPECT_EQ(staged.locked, staged.slots - staged.resident_pages);
}

// Parts that take turns share a slot; pages from files reach it through staging of its size.
TEST(PlannedBytes, ThatAreLockedForPartsThatTakeTurnsAreTheirSlot) {
  const auto bytes = bytes_of(with_pages(
      {.transformer = OffloadMode::kModel, .text = OffloadMode::kModel, .folder = "pages"}));
  EXPECT_NEAR(double(bytes.shared_slot), 11'901'408'320.0 * kElement, 1e6);  // of the transformer
  EXPECT_EQ(bytes.locked, bytes.shared_slot);
}

// Torchao's first layout of codes has scales in the weights' dtype, ours float32: in a double block
// 2 x 15 C rows of matrices, in a single one 11 C, and 10 C and 64 around them.
TEST(PlannedBytes, OfCodesHaveTheScalesOfTheirForm) {
  const auto job = flux_dev();
  const auto bytes = [&](Quantize form) {
    return pages_of(job.tensors->of(Part::Role::kDenoiser), {}, {.quantize = form}).outside;
  };
  constexpr std::int64_t kRows = (19 * 2 * 15 + 38 * 11 + 10) * kHidden + 64;
  EXPECT_EQ(bytes(Quantize::kInt8) - bytes(Quantize::kInt8V1), 2 * kRows);
}

// 96 columns of Q8_0, blocks of 32 numbers in 34 bytes: each of two ranks keeps two whole blocks of
// the three. float8 has a scale for each row.
TEST(PlannedBytes, OfCodesInFilesHaveWholeBlocksAndRowScales) {
  using Shared = PlannedTensor::Shared;
  const auto bytes = [](Block block, bool has_scales, Shared shared, int tp_rank) {
    const bool are_numbers = block.bytes == kElement;
    std::vector<KeptTensor> kept = {
        {.dtype = are_numbers ? at::kBFloat16 : at::kByte,
         .cell = {.columns = block.numbers, .elements = are_numbers ? 1 : block.bytes}}};
    if (has_scales)
      kept.push_back({.which = MatrixTensor::kScales,
                      .dtype = at::kFloat,
                      .cell = {.columns = 0},
                      .own_columns = 1});
    PartTensors part{.tensors = {{.layer = "a",
                                  .rows = 10,
                                  .columns = 96,
                                  .dtype = at::kBFloat16,
                                  .kind = PlannedTensor::Kind::kDense,
                                  .kept = kept,
                                  .shared = shared,
                                  .block = -1,
                                  .leaf = -1,
                                  .use = PageUse::kRepeated,
                                  .sharding = shared == Shared::kRows ? column_parallel(Pieces{2})
                                                                      : row_parallel(Pieces{2})}},
                     .lists = {}};
    return pages_of(part, {.tp = 2, .tp_rank = tp_rank}, {}).outside;
  };
  for (const int rank : {0, 1}) {
    EXPECT_EQ(bytes({32, 34}, false, Shared::kColumns, rank), 10 * 2 * 34);
    EXPECT_EQ(bytes({32, 34}, false, Shared::kRows, rank), 5 * 3 * 34);
    EXPECT_EQ(bytes({1, 1}, true, Shared::kColumns, rank), 10 * (48 + 4));
    EXPECT_EQ(bytes({1, 1}, true, Shared::kRows, rank), 5 * (96 + 4));
    EXPECT_EQ(bytes({1, kElement}, false, Shared::kNot, rank), 10 * 96 * kElement);
  }
}

TEST(PlannedBytes, OfSharedTextEncodersAreDivided) {
  auto job = with_pages({.text = OffloadMode::kBlock});
  const auto alone = bytes_of(job, {.tp = 2}).pages;
  job.layout.text = TextRanks::kShared;
  for (const int rank : {0, 1})
    EXPECT_NEAR(double(bytes_of(job, {.tp = 2}, rank).pages) / double(alone), 0.5, 0.005);
}

// Sequential offload waits for every copy, so it has a single slot whatever is asked for.
TEST(PlannedBytes, OfSequentialOffloadAreOneSlot) {
  const auto slots = [](OffloadMode mode, int prefetch) {
    return bytes_of(with_pages({.transformer = mode, .prefetch = prefetch})).slots;
  };
  const auto one = slots(OffloadMode::kLeaf, 0);
  EXPECT_EQ(slots(OffloadMode::kLeaf, 2), 3 * one);
  EXPECT_EQ(slots(OffloadMode::kSequential, 2), one);
}

// A page of codes for a file is made from one layer's numbers at a time: beside it, the numbers of
// the largest layer, 3 C + 4 C rows of C, and the staging of uploads.
TEST(PlannedBytes, OfTheHostHaveALayersNumbersBesideThePage) {
  auto job = with_pages({.transformer = OffloadMode::kBlock, .prefetch = 0, .folder = "pages"});
  job.memory.quantize = Quantize::kInt8;
  const auto bytes = bytes_of(job);
  const auto numbers = 7 * kHidden * kHidden * kElement;
  EXPECT_EQ(bytes.largest_tensor, numbers);
  EXPECT_EQ(host_peak(job, bytes), bytes.largest_page + numbers + 2 * Upload::kHalf);
}

// A CPU also holds what is outside of pages while a page is made.
TEST(PlannedBytes, OfACpuWhileItMakesAPageHaveAllThatIsInNone) {
  auto job = with_pages({.transformer = OffloadMode::kBlock, .prefetch = 0, .folder = "pages"});
  job.is_on_host = true;
  job.width = job.height = 64;
  job.text_tokens = 8;
  const auto flux = count_flux({.guidance_embeds = true}, SharedModulation::kYes);
  const auto outside = kElement * (flux.embedders.of_rank(1) + flux.last_layer.of_rank(1));
  const auto bytes = predict_transformer_bytes(job, {}, 0, whole_transformer(job.shape()));
  const auto numbers = 7 * kHidden * kHidden * kElement;
  EXPECT_EQ(host_peak(job, bytes), bytes.activations + outside + bytes.largest_page + numbers);
}

// One rank decodes a picture that is not cut; all of them decode tiles.
TEST(PlannedBytes, OfDecodingAreThoseOfRanksWithAPicture) {
  auto job = flux_dev();
  job.tiling = VaeTiling::kOff;
  const Degrees grid{.ring = 3};
  const auto decoding = [&](int rank) { return bytes_of(job, grid, rank).decoding; };
  EXPECT_GT(decoding(0), 0);
  EXPECT_EQ(decoding(1), 0);
  job.num_pictures = job.batch_size = 2;
  EXPECT_EQ(decoding(1), decoding(0));
  EXPECT_EQ(decoding(2), 0);
  job.tiling = VaeTiling::kOn;
  EXPECT_EQ(decoding(2), decoding(0));
  EXPECT_GT(decoding(2), 0);
}

// The first block of the finest level is of full size: it has its input of 256 channels, and 128
// twice, between its convolutions and of its shortcut. A CPU convolves in bands of five times 16
// MiB.
TEST(PlannedBytes, OfDecodingOnACpuAreTensorsOfTheFinestLevel) {
  auto job = flux_dev();
  job.is_on_host = true;
  job.tiling = VaeTiling::kOff;
  constexpr std::int64_t kPixels = 1024 * 1024, kBand = 5 * 16 * 1024 * 1024;
  EXPECT_EQ(bytes_of(job).decoding, kPixels * (256 + 2 * 128) * kElement + kBand);
  job.tiling = VaeTiling::kOn;  // a tile is as large as the picture
  EXPECT_EQ(bytes_of(job).decoding, kPixels * (256 + 2 * 128) * kElement + kBand);
  job.width = job.height = 16;
  constexpr std::int64_t kSmall = 16 * 16 * (256 + 2 * 128) * kElement;
  EXPECT_EQ(bytes_of(job).decoding, 2 * kSmall);
}

}  // namespace braid::planned_bytes_test
