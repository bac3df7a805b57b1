// Predicted against measured peaks: of this process, with weights of true width.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/memory_meter.h"
#include "models/vae/model.h"
#include "pipeline/planner/memory.h"
#include "pipeline/proofs/bench.h"
#include "planned.h"
#include "temporary_folder.h"

namespace braid::peaks_predicted_test {

void expect_near(std::int64_t predicted, std::int64_t measured) {
  const auto allowed = std::max(measured / 20, std::int64_t(100'000'000));
  EXPECT_LE(std::abs(predicted - measured), allowed)
      << predicted / 1e9 << " GB predicted, " << measured / 1e9 << " measured";
}

// One double and two single blocks.
PlanJob few_blocks(const Memory& memory) {
  auto job = job_of_family(named_family("flux1-dev")->with_blocks({1, 2}));
  job.dtype = at::kFloat;
  job.width = job.height = 512;
  job.is_on_host = true;
  job.memory = memory;
  return surveyed(std::move(job));
}

void expect_predicted(const Memory& memory, const Layout& layout, const Degrees& grid) {
  if (!MemoryMeter().is_exact()) GTEST_SKIP();
  const auto job = few_blocks(memory);
  std::int64_t predicted = kProcessBytes;
  for (int rank = 0; rank < grid.product(); ++rank)
    predicted +=
        host_peak(job, predict_transformer_bytes(job, grid, rank, whole_transformer(job.shape())));
  const auto result = bench(
      {.probe =
           {.pipeline = {.model = {}, .dtype = Dtype::kFloat32, .layout = layout, .memory = memory},
            .synthetic = "flux1-dev",
            .blocks = {1, 2},
            .width = 512,
            .height = 512},
       .runs = 1,
       .warm_ups = 0});
  const auto& measured = result.peaks.front().resident;
  expect_near(predicted, std::max(measured[std::size_t(Phase::kLoad)],
                                  measured[std::size_t(Phase::kDenoise)]));
}

// Labelled slow: 10 to 60 seconds each.
TEST(SlowPredictedPeaks, OfAResidentTransformer) { expect_predicted({}, {}, {}); }

TEST(SlowPredictedPeaks, OfAPagedOneInFiles) {
  const TemporaryFolder folder;
  expect_predicted({.offload = {.transformer = OffloadMode::kBlock, .folder = folder.path()}}, {},
                   {});
}

TEST(SlowPredictedPeaks, OfAPagedOneInEightBits) {
  const TemporaryFolder folder;
  expect_predicted({.quantize = Quantize::kInt8,
                    .offload = {.transformer = OffloadMode::kBlock, .folder = folder.path()}},
                   {}, {});
}

TEST(SlowPredictedPeaks, OfRanksThatShareTheProcess) { expect_predicted({}, {.tp = 2}, {.tp = 2}); }

TEST(SlowPredictedPeaks, OfTheDecoder) {
  if (!MemoryMeter().is_exact()) GTEST_SKIP();
  const c10::InferenceMode inference;
  auto job = *named_job("flux1-dev");
  job.width = job.height = 512;
  job.is_on_host = true;
  // the larger one last: what malloc keeps of it would serve the other
  for (const auto dtype : {at::kBFloat16, at::kFloat}) {
    job.dtype = dtype;
    const Vae vae(job.family->description().vae, Weights::synthetic({.dtype = dtype}),
                  Vae::Parts::kDecoder);
    const auto latents = at::zeros({1, 16, 64, 64}, dtype);
    MemoryMeter meter;
    meter.take();
    const auto before = std::int64_t(meter.take());
    vae.decode(latents, Tiles::kNever);
    const auto measured = std::int64_t(meter.take()) - before;
    expect_near(bytes_of_others(surveyed(job), {}, 0).decoding, measured);
  }
}

// Beside its weights, which are read for the pictures of a request and count, too.
TEST(SlowPredictedPeaks, OfTheEncoder) {
  if (!MemoryMeter().is_exact()) GTEST_SKIP();
  const c10::InferenceMode inference;
  auto job = *named_job("flux1-schnell");
  job.text_tokens = 1;  // else T5 takes more
  job.is_on_host = true;
  job.pictures.encoded_pixels = 512 * 512;
  for (const auto dtype : {at::kBFloat16, at::kFloat}) {
    job.dtype = dtype;
    const auto& config = job.family->description().vae;
    const Vae vae(config, Weights::synthetic({.dtype = dtype}), Vae::Parts::kEncoder);
    const auto picture = at::zeros({1, 3, 512, 512}, dtype);
    MemoryMeter meter;
    meter.take();
    const auto before = std::int64_t(meter.take());
    vae.encode(picture, Tiles::kNever);
    const auto measured = std::int64_t(meter.take()) - before;
    const auto weights = encoder_parameters(config) * job.element_bytes();
    expect_near(bytes_of_others(surveyed(job), {}, 0).encoding - weights, measured);
  }
}

}  // namespace braid::peaks_predicted_test
