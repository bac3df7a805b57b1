// A random Qwen-Image-2.1 pipeline of small shapes, and requests to it.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>

#include "pipeline/engine.h"

namespace braid {

// 4 heads, 2 blocks; 4 heads of text, two of keys.
inline const std::filesystem::path kQwen21Model =
    std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity/qwen21/model";

// 24 image tokens; 18 and more of text.
inline const Request kQwen21Request{.prompts = {"a small red circle on a blue background"},
                                    .width = 96,
                                    .height = 64,
                                    .steps = 2,
                                    .seed = 5};

inline Request guided_qwen21() {
  auto request = kQwen21Request;
  request.guidance = 3;
  request.negative_prompt = "blurry, two stars; a green ring above a pink square, a purple heart";
  return request;
}

// Even where references have a megapixel, their latents are few: 4096 and 4144.
inline Pixels qwen21_reference(int width, int height, std::uint64_t seed, bool has_alpha) {
  const auto values = [&](std::int64_t count, std::uint64_t of) {
    const auto drawn =
        at::randint(0, 256, {count}, at::detail::createCPUGenerator(2 * seed + of), at::kByte);
    const auto* const data = drawn.const_data_ptr<std::uint8_t>();
    return std::vector<std::uint8_t>(data, data + count);
  };
  const auto pixels = std::int64_t(width) * height;
  return {.width = width,
          .height = height,
          .rgb = values(3 * pixels, 0),
          .alpha = has_alpha ? values(pixels, 1) : std::vector<std::uint8_t>()};
}

inline Request qwen21_with_references(ReferenceCache cache = ReferenceCache::kAuto) {
  auto request = guided_qwen21();
  request.pictures.references = {qwen21_reference(32, 32, 1, true),
                                 qwen21_reference(60, 44, 2, false)};
  request.pictures.reference_cache = cache;
  return request;
}

inline PipelineOptions qwen21_with(const Layout& layout = {}, const Memory& memory = {}) {
  return {.model = kQwen21Model,
          .dtype = Dtype::kFloat32,
          .threads = degrees_of(layout).product(),  // the bits of sums depend on it
          .layout = layout,
          .memory = memory};
}

struct DrawnQwen21 {
  std::vector<Picture> pictures;
  RunFacts facts;

  const Tensor& operator[](const std::string& name) const { return facts.recording.at(name); }
};

inline DrawnQwen21 drawn_qwen21(const PipelineOptions& options,
                                const Request& request = kQwen21Request) {
  auto [pictures, facts] =
      Engine(options, {}).generate(request, {}, {.record = RecordTensors::kYes});
  return {.pictures = std::move(pictures), .facts = std::move(facts)};
}

inline double qwen21_error(const Tensor& got, const Tensor& want) {
  return ((got - want).abs().max() / want.abs().max()).item<double>();
}

}  // namespace braid
