// A random Krea 2 pipeline of small shapes, and requests to it.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>

#include "pipeline/engine.h"

namespace braid {

// 24 heads, of which four each see one of 6 of keys; 2 blocks; 4 heads of text, two of keys.
inline const std::filesystem::path kKrea2Model =
    std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity/krea2/model";

// 35 image tokens.
inline const Request kKrea2Request{.prompts = {"a small red circle on a blue background"},
                                   .width = 112,
                                   .height = 80,
                                   .steps = 2,
                                   .guidance = 0,
                                   .max_sequence_length = 80,
                                   .seed = 5};

inline Request guided_krea2() {
  auto request = kKrea2Request;
  request.guidance = 3;
  request.negative_prompt = "blurry, two stars; a green ring above a pink square, a purple heart";
  request.max_sequence_length = 120;
  return request;
}

inline PipelineOptions krea2_with(const Layout& layout = {}, const Memory& memory = {}) {
  return {.model = kKrea2Model,
          .dtype = Dtype::kFloat32,
          .threads = degrees_of(layout).product(),  // the bits of sums depend on it
          .layout = layout,
          .memory = memory};
}

struct DrawnKrea2 {
  std::vector<Picture> pictures;
  RunFacts facts;

  const Tensor& operator[](const std::string& name) const { return facts.recording.at(name); }
};

inline DrawnKrea2 drawn_krea2(const PipelineOptions& options,
                              const Request& request = kKrea2Request) {
  auto [pictures, facts] =
      Engine(options, {}).generate(request, {}, {.record = RecordTensors::kYes});
  return {.pictures = std::move(pictures), .facts = std::move(facts)};
}

inline double krea2_error(const Tensor& got, const Tensor& want) {
  return ((got - want).abs().max() / want.abs().max()).item<double>();
}

}  // namespace braid
