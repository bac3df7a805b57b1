// The bundled model with weights in 8 bits: near the float32 velocity, and the same in any layout.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "picture_requests.h"
#include "pipeline/engine/engine.h"

namespace braid::quantize_test {

const auto kModel = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo",
           kFixtures = std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity";
const std::vector<std::string> kEveryLayer = {"*", "*.*", "*.*.*", "*.*.*.*", "*.*.*.*.*"};

Recording run(PipelineOptions options) {
  options.dtype = Dtype::kFloat32;
  const Engine engine(options, {});
  const Request request{.prompts = {"a red circle on a blue background"},
                        .width = 112,
                        .height = 80,
                        .steps = 1,
                        .max_sequence_length = 21,
                        .seed = 3};
  return engine.generate(request, {}, {.record = RecordTensors::kYes}).facts.recording;
}

double relative_l2(const Tensor& got, const Tensor& want) {
  return ((got - want).norm() / want.norm()).item<double>();
}

const Quantize kForms[] = {Quantize::kInt8, Quantize::kInt8V1, Quantize::kInt8Dynamic,
                           Quantize::kFloat8};

// The promises of docs/numerics.md for one evaluation.
TEST(Quantized, TransformerIsNearTheExactOne) {
  const auto exact = run({.model = kModel}).at("velocity_first");
  const double limits[] = {0.04, 0.04, 0.04, 0.1};
  for (int i = 0; i < 4; ++i) {
    const auto error = relative_l2(
        run({.model = kModel, .memory = {.quantize = kForms[i]}}).at("velocity_first"), exact);
    EXPECT_LT(error, limits[i]);
    EXPECT_GT(error, 1e-4) << "nothing was quantized";
    RecordProperty("error" + std::to_string(i), std::to_string(error));
  }
}

TEST(Quantized, TextEncoderIsNearTheExactOne) {
  const auto exact = run({.model = kModel}),
             quantized = run({.model = kModel, .memory = {.quantize_text = Quantize::kInt8}});
  const auto error = relative_l2(quantized.at("prompt_embeds"), exact.at("prompt_embeds"));
  EXPECT_LT(error, 0.02);
  EXPECT_GT(error, 1e-4) << "nothing was quantized";
  EXPECT_TRUE(at::equal(quantized.at("pooled_prompt_embeds"), exact.at("pooled_prompt_embeds")));
}

TEST(Quantized, LayersOnTheListStayExact) {
  const auto exact = run({.model = kModel}).at("velocity_first");
  const auto got =
      run({.model = kModel, .memory = {.quantize = Quantize::kInt8, .keep_dense = kEveryLayer}})
          .at("velocity_first");
  EXPECT_TRUE(at::equal(got, exact));
}

TEST(Quantized, LayersOnTheListStayExactInControlNetsToo) {
  const auto model = kFixtures / "controlnets/model";
  const auto velocity = [&](Memory memory) {
    const PipelineOptions options{
        .model = model, .controlnets = {model / "controlnet_1"}, .memory = std::move(memory)};
    const auto request = request_with({.controls = {{.picture = waves(64, 48), .mode = 1}}});
    return recording_of(options, request).at("velocity_first");
  };
  const auto exact = velocity({});
  EXPECT_TRUE(at::equal(velocity({.quantize = Quantize::kInt8, .keep_dense = kEveryLayer}), exact));
  EXPECT_FALSE(at::equal(velocity({.quantize = Quantize::kInt8}), exact));
}

// A value between two codes becomes one or the other depending on a sum's last bit. A layout that
// rounds sums differently gives other bits, but is as near to the exact velocity.
TEST(SlowQuantized, LayoutsWithActivationsInCodesAreNearTheExactOne) {
  const auto exact = run({.model = kModel}).at("velocity_first");
  for (const auto& layout : {Layout{.tp = 2}, Layout{.tp = 3, .modulation = SharedModulation::kNo},
                             Layout{.ring = 2}, Layout{.tp = 2, .ulysses = 2}}) {
    const auto got =
        run({.model = kModel, .layout = layout, .memory = {.quantize = Quantize::kInt8Dynamic}});
    EXPECT_LT(relative_l2(got.at("velocity_first"), exact), 0.04);
  }
}

// Shards of one device's codes: only sums differ, as in float32.
class QuantizedLayouts : public testing::TestWithParam<Quantize> {};

TEST_P(QuantizedLayouts, ComputeWhatOneRankComputes) {
  const auto one = run({.model = kModel, .memory = {.quantize = GetParam()}}).at("velocity_first");
  for (const auto& layout : {Layout{.tp = 2}, Layout{.tp = 3, .modulation = SharedModulation::kNo},
                             Layout{.ring = 2}, Layout{.tp = 2, .ulysses = 2}}) {
    const auto got = run({.model = kModel, .layout = layout, .memory = {.quantize = GetParam()}})
                         .at("velocity_first");
    EXPECT_LT(((got - one).abs().max() / one.abs().max()).item<double>(), 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(SlowForms, QuantizedLayouts,
                         testing::Values(Quantize::kInt8, Quantize::kFloat8));

}  // namespace braid::quantize_test
