// How a Qwen2.5-VL or a Qwen3-VL is shown a picture: transformers' Qwen2VLImageProcessor.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "base/json.h"
#include "models/qwen3_vl/patches.h"
#include "ops/ops.h"
#include "pipeline/request/picture_size.h"

namespace braid {

// Whose filters resize: LibTorch's kernels for bytes, as in torchvision, or Pillow's, with which
// Qwen2.5-VL was trained.
enum class PictureFilters { kTorch, kPillow };

// The fields of an image processor, which are all or a part of what `file` keeps alive.
struct ImageProcessorFile {
  JsonObject file, fields;
};

// As transformers' ImageProcessingMixin reads a folder: the 'image_processor' of
// processor_config.json if that has one, or else preprocessor_config.json. Empty: there is neither.
std::optional<ImageProcessorFile> read_image_processor(const std::filesystem::path& folder);

// Throws InputError unless an image processor's `rescale_factor` takes bytes to 0 .. 1.
void check_rescale_factor(const JsonObject& processor);

// The longest shape that smart_resize of transformers takes: the longer side over the shorter.
inline constexpr int kLongestShapeSeen = 200;

class PictureProcessor {
 public:
  // Reads the image processor in `folder`. Throws InputError naming the field, also if its patches
  // differ from the vision tower's.
  PictureProcessor(const std::filesystem::path& folder, const PatchForm& form,
                   PictureFilters filters = PictureFilters::kTorch);
  // That of published models with such patches.
  explicit PictureProcessor(const PatchForm& form);

  // The nearest multiples of a token's pixels, within the range of areas at the same aspect ratio.
  // Throws InputError unless that is at most 200.
  PictureSize size_seen(PictureSize size) const;
  // What the vision tower makes of a picture of this size. Throws InputError for one that cannot be
  // shown.
  std::int64_t num_tokens(PictureSize size) const;

  // A picture from -1 to 1, resized if it has to be, and normalised: [3 H W] in float32.
  Tensor operator()(const Tensor& picture_13HW) const;

 private:
  void read(const JsonObject& json, const PatchForm& form);
  PictureSize size_shown(PictureSize size) const;
  Tensor resized(const Tensor& bytes_13HW) const;

  PictureFilters filters_;
  std::int64_t side_;                    // of a token, in pixels
  std::int64_t least_area_, most_area_;  // in pixels
  bool resizes_;
  int filter_;                            // as Pillow numbers them
  std::vector<double> mean_, deviation_;  // of red, green and blue, 0 to 1
};

// num_tokens() of the image processor in `folder`, which is read when a picture is asked about; or,
// for a model that has no files, of published models'.
std::function<std::int64_t(PictureSize)> picture_tokens(const std::filesystem::path& folder,
                                                        const PatchForm& form);

}  // namespace braid
