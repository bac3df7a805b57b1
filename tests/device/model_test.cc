// The bundled model on a GPU, whole, beside itself on the CPU.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "on_gpu.h"
#include "pipeline/engine.h"

namespace braid::model_test {

const std::filesystem::path kModel = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo";

struct Drawn {
  Recording recording;
  std::vector<Picture> pictures;
};

Drawn draw(const PipelineOptions& options) {
  const Engine engine(options, {});
  Drawn drawn;
  drawn.pictures = engine.generate({.prompts = {"a red circle on a blue background"},
                                    .width = 64,
                                    .height = 48,
                                    .steps = 2,
                                    .max_sequence_length = 13},
                                   {}, &drawn.recording);
  return drawn;
}

double largest_error(const Tensor& got, const Tensor& want) {
  return ((got - want).abs().max() / want.abs().max()).item<double>();
}

using ModelOnGpu = OnGpu;

TEST_F(ModelOnGpu, DrawsWhatTheCpuDraws) {
  const PipelineOptions options{.model = kModel, .dtype = Dtype::kFloat32};
  auto there = options;
  there.device = "cuda:0";
  const auto want = draw(options), got = draw(there);
  for (const auto* name :
       {"prompt_embeds", "pooled_prompt_embeds", "velocity_first", "latents_final"})
    EXPECT_LT(largest_error(got.recording.at(name), want.recording.at(name)), 1e-4) << name;
}

}  // namespace braid::model_test
