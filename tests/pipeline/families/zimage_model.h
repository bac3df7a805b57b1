// A random Z-Image pipeline of small shapes, and requests to it.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>

#include "pipeline/engine.h"

namespace braid {

// 6 heads, 1 + 1 + 2 blocks; 2 key heads in the text encoder.
inline const std::filesystem::path kZImageModel =
    std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity/zimage-turbo/model";

// 35 image tokens, padded to 64; 31 text tokens, padded to 32.
inline const Request kZImageRequest{.prompts = {"a small red circle on a blue background"},
                                    .width = 112,
                                    .height = 80,
                                    .steps = 2,
                                    .guidance = 0,
                                    .max_sequence_length = 31,
                                    .seed = 5};

// Prompts of 32 and 64 tokens, pads included, in the two branches.
inline Request guided_zimage() {
  auto request = kZImageRequest;
  request.guidance = 3;
  request.negative_prompt = "blurry, two stars; a green ring above a pink square, a purple heart";
  request.max_sequence_length = 100;
  return request;
}

inline PipelineOptions zimage_with(const Layout& layout = {}, const Memory& memory = {}) {
  return {.model = kZImageModel,
          .dtype = Dtype::kFloat32,
          .threads = degrees_of(layout).product(),  // the bits of sums depend on it
          .layout = layout,
          .memory = memory};
}

struct DrawnZImage {
  std::vector<Picture> pictures;
  RunFacts facts;

  const Tensor& operator[](const std::string& name) const { return facts.recording.at(name); }
};

inline DrawnZImage drawn_zimage(const PipelineOptions& options,
                                const Request& request = kZImageRequest) {
  auto [pictures, facts] =
      Engine(options, {}).generate(request, {}, {.record = RecordTensors::kYes});
  return {.pictures = std::move(pictures), .facts = std::move(facts)};
}

inline double zimage_error(const Tensor& got, const Tensor& want) {
  return ((got - want).abs().max() / want.abs().max()).item<double>();
}

}  // namespace braid
