// Requests with pictures, for tests of what is drawn and what is refused.
#pragma once

#include <gmock/gmock.h>

#include "message_of.h"
#include "pipeline/engine/engine.h"
#include "pipeline/request/check_pictures.h"

namespace braid {

inline Pixels waves(int width, int height) {
  Pixels picture{width, height, {}};
  for (int i = 0; i < width * height * 3; ++i)
    picture.rgb.push_back(std::uint8_t(i * 7 % 251 + i % 5));
  return picture;
}

// White in the right half.
inline Pixels half(int width, int height) {
  Pixels mask{width, height, {}};
  for (int i = 0; i < width * height; ++i)
    mask.rgb.insert(mask.rgb.end(), 3, i % width < width / 2 ? 0 : 255);
  return mask;
}

inline const PicturesTaken kStarts{.init = PicturesTaken::Init::kMaybe};

inline std::string refusal(const PicturesIn& pictures, const PicturesTaken& taken = kStarts) {
  return message_of([&] { check_pictures({.pictures = pictures}, taken); });
}

inline Request request_with(PicturesIn pictures) {
  return {.prompts = {"a red circle"},
          .negative_prompt = "blurry",
          .true_cfg = 2,
          .width = 64,
          .height = 48,
          .steps = 2,
          .max_sequence_length = 21,  // the models' own are hundreds
          .num_images = 2,
          .pictures = std::move(pictures)};
}

inline Recording recording_of(PipelineOptions options, const Request& request) {
  options.dtype = Dtype::kFloat32;
  const Engine engine(options, {});
  return engine.generate(request, {}, {.record = RecordTensors::kYes}).facts.recording;
}

inline Recording recording_of(const std::string& model, const Request& request,
                              const Layout& layout) {
  return recording_of({.model = std::filesystem::path(BRAID_SOURCE_DIR) / model, .layout = layout},
                      request);
}

inline void expect_near(const Recording& one, const Recording& many) {
  EXPECT_TRUE(at::equal(one.at("latents_initial"), many.at("latents_initial")));
  const auto& want = one.at("latents_final");
  const auto error = (many.at("latents_final") - want).abs().max() / want.abs().max();
  EXPECT_LT(error.item<double>(), 1e-5);
}

}  // namespace braid
