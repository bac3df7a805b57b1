// A random JoyAI-Image-Edit pipeline of small shapes, and the request diffusers drew with it.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "image/png.h"
#include "pipeline/deployment/degrees.h"
#include "pipeline/engine/engine.h"

namespace braid {

// 2 heads, 2 blocks; 2 key heads in the text encoder. Pictures have about a megapixel, which the
// autoencoder's six levels reduce to few latents: 234 tokens for 1152x832.
inline const std::filesystem::path kJoy =
    std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity/joy";

inline Pixels joy_reference(int number) {
  const auto path = kJoy / ("reference" + std::to_string(number) + ".png");
  return decode_png(read_file(path), path.string());
}

// The request behind edit.safetensors.
inline Request joy_request() {
  return {.prompts = {"a small red circle on a blue background"},
          .steps = 3,
          .guidance = 4,
          .seed = 5,
          .pictures = {.references = {joy_reference(0)}}};
}

// The request behind plus.safetensors.
inline Request plus_request() {
  auto request = joy_request();
  request.negative_prompt = "blurry, two stars";
  request.width = 640;
  request.height = 512;
  request.seed = 6;
  request.pictures.references.push_back(joy_reference(1));
  return request;
}

// Edit-Plus has the same parts under other names.
inline std::filesystem::path plus_in(const std::filesystem::path& folder) {
  std::filesystem::copy(kJoy / "model", folder / "plus", std::filesystem::copy_options::recursive);
  for (const auto* file : {"model_index.json", "transformer/config.json"}) {
    auto text = read_file(folder / "plus" / file);
    const std::string edit = "JoyImageEdit";
    for (auto at = text.find(edit); at != std::string::npos; at = text.find(edit, at + 1))
      text.insert(at + edit.size(), "Plus");
    write_file(folder / "plus" / file, text);
  }
  return folder / "plus";
}

inline PipelineOptions joy_with(const Layout& layout = {}, const Memory& memory = {},
                                const std::filesystem::path& model = kJoy / "model") {
  return {.model = model,
          .dtype = Dtype::kFloat32,
          .threads = degrees_of(layout).product(),  // the bits of sums depend on it
          .layout = layout,
          .memory = memory};
}

inline Generated joy_drawn(const PipelineOptions& options, const Request& request) {
  return Engine(options, {}).generate(request, {}, {.record = RecordTensors::kYes});
}

// joy_request() drawn by one rank with all weights in memory: once per test process.
inline const Generated& joy_drawn_plainly() {
  static const auto drawn = joy_drawn(joy_with(), joy_request());
  return drawn;
}

// Without the picture, which takes longest.
inline RunFacts denoised(const PipelineOptions& options, const Request& request) {
  return Engine(options, {})
      .generate(request, {}, {.record = RecordTensors::kYes, .until = RunUntil::kLatents})
      .facts;
}

inline Recording recorded_latents(const PipelineOptions& options, const Request& request) {
  return denoised(options, request).recording;
}

inline double largest_difference(const Tensor& got, const Tensor& want) {
  return ((got - want).abs().max() / want.abs().max()).item<double>();
}

}  // namespace braid
