// Random FLUX.3 pipelines of small shapes, and requests to them.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>

#include "pipeline/engine.h"

namespace braid {

// 4 heads; 2 blocks of each mode and 2 of all; 4 heads of text, two of keys. The other is a flow
// map of 3 heads, 1 and 3 blocks.
inline const std::filesystem::path kFlux3Model =
    std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity/flux3/model";
inline const std::filesystem::path kFlux3Map =
    std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity/flux3-map/model";

// 35 image tokens, 80 of text.
inline const Request kFlux3Request{.prompts = {"a small red circle on a blue background"},
                                   .width = 112,
                                   .height = 80,
                                   .steps = 2,
                                   .guidance = 1,
                                   .max_sequence_length = 160,
                                   .seed = 5};

inline Pixels some_picture(int width, int height) {
  Pixels picture{width, height, std::vector<std::uint8_t>(std::size_t(width) * height * 3)};
  for (std::size_t i = 0; i < picture.rgb.size(); ++i)
    picture.rgb[i] = std::uint8_t((i * i * 31 + i * 7) % 65537 % 256);
  return picture;
}

// 80 tokens of one branch, 160 of the other, and two references of 20 and 24 tokens.
inline Request guided_flux3() {
  auto request = kFlux3Request;
  request.guidance = 3;
  request.negative_prompt = "blurry, two stars";
  for (int i = 0; i < 20; ++i) *request.negative_prompt += ", a green ring above a pink square";
  request.pictures.references = {some_picture(75, 90), some_picture(64, 96)};
  return request;
}

inline PipelineOptions flux3_with(const Layout& layout = {}, const Memory& memory = {},
                                  const std::filesystem::path& model = kFlux3Model) {
  return {.model = model,
          .dtype = Dtype::kFloat32,
          .threads = degrees_of(layout).product(),  // the bits of sums depend on it
          .layout = layout,
          .memory = memory};
}

struct DrawnFlux3 {
  std::vector<Picture> pictures;
  RunFacts facts;

  const Tensor& operator[](const std::string& name) const { return facts.recording.at(name); }
};

inline DrawnFlux3 drawn_flux3(const PipelineOptions& options,
                              const Request& request = kFlux3Request) {
  auto [pictures, facts] =
      Engine(options, {}).generate(request, {}, {.record = RecordTensors::kYes});
  return {.pictures = std::move(pictures), .facts = std::move(facts)};
}

inline double flux3_error(const Tensor& got, const Tensor& want) {
  return ((got - want).abs().max() / want.abs().max()).item<double>();
}

}  // namespace braid
