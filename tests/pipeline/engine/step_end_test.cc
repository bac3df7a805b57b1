// What callers see and change between steps, and pictures given as values or latents.
#include <gmock/gmock.h>

#include <cmath>

#include "braid/braid.h"
#include "message_of.h"

namespace braid::step_end_test {

using testing::ElementsAre;
using testing::HasSubstr;

PipelineOptions options_with(const Layout& layout) {
  return {.model = std::filesystem::path(BRAID_SOURCE_DIR) / "models" / "demo",
          .dtype = Dtype::kFloat32,
          .layout = layout};
}

Request request_of(std::uint64_t seed) {
  return {.prompts = {"a red circle"},
          .width = 64,
          .height = 48,
          .steps = 3,
          .max_sequence_length = 21,
          .seed = seed,
          .num_images = 2,
          .batch_size = 2,
          .output = Output::kLatents};
}

std::vector<float> final_latents(const Pipeline& pipeline, const Request& request,
                                 const std::function<void(StepEnd&)>& step_end = {}) {
  std::vector<float> all;
  for (const auto& picture : pipeline.generate(request, {.step_end = step_end}))
    all.insert(all.end(), picture.values.values.begin(), picture.values.values.end());
  return all;
}

class StepEnds : public testing::TestWithParam<Layout> {};

// The latents of seed 5 after its second step, put in place of those of seed 8, end as those of 5.
TEST_P(StepEnds, AreWhereTheNextStepStartsFrom) {
  const Pipeline pipeline(options_with(GetParam()));
  std::vector<StepEnd> seen;
  const auto wanted =
      final_latents(pipeline, request_of(5), [&](StepEnd& end) { seen.push_back(end); });
  ASSERT_EQ(seen.size(), 3);
  EXPECT_THAT(seen[1].latents.shape, ElementsAre(2, 12, 64));
  EXPECT_EQ(seen[1].step, 2);
  EXPECT_GT(seen[0].timestep, seen[1].timestep);
  EXPECT_EQ(seen[2].latents.values, wanted);
  const auto others = final_latents(pipeline, request_of(8));
  EXPECT_NE(others, wanted);
  const auto replaced = final_latents(pipeline, request_of(8), [&](StepEnd& end) {
    if (end.step == 2) end.latents = seen[1].latents;
  });
  EXPECT_EQ(replaced, wanted);
}

INSTANTIATE_TEST_SUITE_P(Layouts, StepEnds,
                         testing::Values(Layout{}, Layout{.tp = 2}, Layout{.dp = 2},
                                         Layout{.ulysses = 2}, Layout{.pp = 2}));

TEST(StepEnd, RefusesLatentsOfAnotherShape) {
  const Pipeline pipeline(options_with({}));
  const auto cut = [](StepEnd& end) { end.latents.shape.back() /= 2; };
  EXPECT_THAT(message_of([&] { final_latents(pipeline, request_of(5), cut); }),
              HasSubstr("should have the shape [2, 12, 64]"));
}

TEST(StepEnd, RefusesLatentsThatAreNotFinite) {
  for (const auto& layout : {Layout{}, Layout{.tp = 2}})
    for (const float value : {NAN, INFINITY}) {
      const Pipeline pipeline(options_with(layout));
      const auto spoil = [&](StepEnd& end) { end.latents.values[7] = value; };
      EXPECT_THAT(message_of([&] { final_latents(pipeline, request_of(5), spoil); }),
                  HasSubstr("values of the latents after a step should be finite numbers, one is"));
    }
}

TEST(Output, OfValuesIsWhatBytesAreRoundedFrom) {
  const Pipeline pipeline(options_with({}));
  auto request = request_of(5);
  request.output = Output::kBytes;
  const auto bytes = pipeline.generate(request);
  request.output = Output::kValues;
  const auto both = pipeline.generate(request);
  ASSERT_EQ(both.size(), 2);
  EXPECT_TRUE(bytes[1].values.values.empty());
  EXPECT_EQ(both[1].rgb, bytes[1].rgb);
  EXPECT_THAT(both[1].values.shape, ElementsAre(3, 48, 64));
  for (std::size_t i = 0; i < 48 * 64; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      ASSERT_EQ(std::nearbyint(both[1].values.values[c * 48 * 64 + i] * 255.0f),
                float(both[1].rgb[3 * i + c]));
}

TEST(BaseSigmas, SetTheStepsAndGoThroughTheShift) {
  const Pipeline pipeline(options_with({}));
  auto request = request_of(5);
  const auto usual = final_latents(pipeline, request);
  request.steps.reset();
  request.sampling.base_sigmas = {1, 2 / 3.0, 1 / 3.0};  // the model's own for three steps
  EXPECT_EQ(final_latents(pipeline, request), usual);
  request.sampling.base_sigmas = {0.9, 0.3};
  std::vector<double> timesteps;
  final_latents(pipeline, request, [&](StepEnd& end) { timesteps.push_back(end.timestep); });
  // FluxPipeline's shift for the 12 tokens of a picture.
  const double weight = std::exp(0.5 + (12 - 256) * (1.15 - 0.5) / (4096 - 256));
  const auto shifted = [&](double sigma) { return 1000 * weight / (weight + 1 / sigma - 1); };
  EXPECT_THAT(timesteps, ElementsAre(testing::DoubleNear(shifted(0.9), 1e-3),
                                     testing::DoubleNear(shifted(0.3), 1e-3)));
}

}  // namespace braid::step_end_test
