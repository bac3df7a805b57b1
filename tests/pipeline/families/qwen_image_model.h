// A random Qwen-Image pipeline of small shapes, and requests to it.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>

#include "pipeline/engine.h"

namespace braid {

// 4 heads, 2 blocks; 3 heads of text, one of keys.
inline const std::filesystem::path kQwenImageModel =
    std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity/qwen-image/model";

// 35 image tokens.
inline const Request kQwenImageRequest{.prompts = {"a small red circle on a blue background"},
                                       .width = 112,
                                       .height = 80,
                                       .steps = 2,
                                       .guidance = 1,
                                       .max_sequence_length = 80,
                                       .seed = 5};

inline Request guided_qwen_image() {
  auto request = kQwenImageRequest;
  request.guidance = 3;
  request.negative_prompt = "blurry, two stars; a green ring above a pink square, a purple heart";
  request.max_sequence_length = 120;
  return request;
}

inline PipelineOptions qwen_image_with(const Layout& layout = {}, const Memory& memory = {}) {
  return {.model = kQwenImageModel,
          .dtype = Dtype::kFloat32,
          .threads = degrees_of(layout).product(),  // the bits of sums depend on it
          .layout = layout,
          .memory = memory};
}

struct DrawnQwenImage {
  std::vector<Picture> pictures;
  RunFacts facts;

  const Tensor& operator[](const std::string& name) const { return facts.recording.at(name); }
};

inline DrawnQwenImage drawn_qwen_image(const PipelineOptions& options,
                                       const Request& request = kQwenImageRequest) {
  auto [pictures, facts] =
      Engine(options, {}).generate(request, {}, {.record = RecordTensors::kYes});
  return {.pictures = std::move(pictures), .facts = std::move(facts)};
}

inline double qwen_image_error(const Tensor& got, const Tensor& want) {
  return ((got - want).abs().max() / want.abs().max()).item<double>();
}

}  // namespace braid
