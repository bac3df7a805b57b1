// The text half of double blocks on a stream of its own, beside the same on the image half's.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "on_gpu.h"
#include "pipeline/engine/engine.h"
#include "pipeline/proofs/bench.h"

namespace braid::text_stream_test {

const std::filesystem::path kModel = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo";

PipelineOptions options(TextStream stream, Graphs graphs = Graphs::kAuto) {
  return {.model = kModel,
          .dtype = Dtype::kBfloat16,
          .device = "cuda:0",
          .graphs = graphs,
          .text_stream = stream};
}

Generated draw(const PipelineOptions& options) {
  const Engine engine(options, {}, Measure::kPeaks);
  return engine.generate({.prompts = {"a red circle on a blue background"},
                          .width = 64,
                          .height = 48,
                          .steps = 4,
                          .max_sequence_length = 13},
                         {}, {.record = RecordTensors::kYes});
}

void expect_same(const PipelineOptions& own, const std::string& what) {
  auto shared = own;
  shared.text_stream = TextStream::kShared;
  const auto want = draw(shared), got = draw(own);
  for (const auto* const name : {"velocity_first", "latents_final"})
    EXPECT_TRUE(at::equal(got.facts.recording.at(name), want.facts.recording.at(name)))
        << name << what;
  EXPECT_EQ(got.pictures.front().rgb, want.pictures.front().rgb) << what;
}

// Pictures in all forms take minutes where the GPU is made, of which FakeOrder has the parts.
using SlowTextStreamOnGpu = OnGpu;
using TextStreamOnGpu = OnGpu;

TEST_F(SlowTextStreamOnGpu, ChangesNoByte) {
  for (const auto graphs : {Graphs::kAuto, Graphs::kOff})
    expect_same(options(TextStream::kOwn, graphs), graphs == Graphs::kOff ? ", eager" : "");
}

// int8 widens weights in scratch memory, which each stream needs for itself.
TEST_F(SlowTextStreamOnGpu, ChangesNoByteInEightBits) {
  for (const auto form : {Quantize::kInt8, Quantize::kInt8Dynamic, Quantize::kFloat8}) {
    auto own = options(TextStream::kOwn);
    own.memory.quantize = form;
    expect_same(own, text_of(", form ", int(form)));
  }
}

TEST_F(SlowTextStreamOnGpu, ChangesNoByteWhereWeightsAreCopied) {
  for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kLeaf}) {
    auto own = options(TextStream::kOwn);
    own.memory.offload.transformer = mode;
    expect_same(own, text_of(", offload ", int(mode)));
  }
}

TEST_F(SlowTextStreamOnGpu, ChangesNoByteBesideACache) {
  auto own = options(TextStream::kOwn);
  own.cache = {.mode = CacheMode::kFirstBlock, .threshold = 0.3};
  expect_same(own, ", cache");
}

TEST_F(TextStreamOnGpu, IsTakenWhereAskedFor) {
  for (const auto stream : {TextStream::kShared, TextStream::kOwn}) {
    const auto result = bench(
        deploy(options(stream)),
        {.probe = {.width = 32, .height = 32, .max_sequence_length = 8}, .runs = 1, .warm_ups = 0});
    EXPECT_EQ(result.text_stream, stream);
    EXPECT_EQ(result.graph.failure, "");
  }
}

}  // namespace braid::text_stream_test
