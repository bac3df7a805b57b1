#include "pipeline/families/picture_processor.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "image/resize.h"

namespace braid {
namespace {

constexpr std::int64_t kLargestArea = std::int64_t(1) << 40;
constexpr int kBilinear = 2, kBicubic = 3;
constexpr double kLevels = 255;

// What absent fields mean to the class; published files have them all.
constexpr std::int64_t kLeastArea = 56 * 56, kMostArea = 28 * 28 * 1280;
const std::vector<double> kMean = {0.48145466, 0.4578275, 0.40821073},
                          kDeviation = {0.26862954, 0.26130258, 0.27577711};

std::vector<double> three_numbers(const JsonObject& json, const char* key,
                                  const std::vector<double>& otherwise) {
  if (!json.has(key)) return otherwise;
  const auto& list = json.at(key);
  const bool are_three = list.is_array() && list.size() == 3 && list[0].is_number() &&
                         list[1].is_number() && list[2].is_number();
  require(are_three, json.source(), ": '", key, "' should be three numbers");
  return list.get<std::vector<double>>();
}

// As the class reads it: the field beside `size` overrules the edge in it, and without either an
// absent `size` is the class's own.
std::int64_t area(const JsonObject& json, const char* field, const char* edge,
                  std::int64_t otherwise) {
  if (json.has(field)) return json.integer(field, 1, kLargestArea);
  if (!json.has("size")) return otherwise;
  const JsonObject size(json.at("size"), json.source() + ": 'size'");
  return size.integer(edge, 1, kLargestArea);
}

// Bytes [1 3 H W], resized as Pillow does.
Tensor pillow_resized(const Tensor& bytes_13HW, PictureSize size, Resampling filter) {
  const auto bytes_HW3 = bytes_13HW[0].permute({1, 2, 0}).contiguous();
  const auto* const first = bytes_HW3.const_data_ptr<std::uint8_t>();
  const auto made = braid::resized({.width = int(bytes_HW3.size(1)),
                                    .height = int(bytes_HW3.size(0)),
                                    .rgb = {first, first + bytes_HW3.numel()}},
                                   size.width, size.height, filter);
  return at::tensor(made.rgb, at::kByte)
      .view({1, made.height, made.width, 3})
      .permute({0, 3, 1, 2});
}

}  // namespace

PictureProcessor::PictureProcessor(const std::filesystem::path& folder, const PatchForm& form,
                                   PictureFilters filters)
    : filters_(filters) {
  const auto found = read_image_processor(folder);
  require(found.has_value(), folder.string(), " has neither a processor_config.json with an ",
          "'image_processor' nor a preprocessor_config.json");
  read(found->fields, form);
}

// Those of Qwen2.5-VL and Qwen3-VL have the same largest area in tokens.
PictureProcessor::PictureProcessor(const PatchForm& form) : filters_(PictureFilters::kTorch) {
  constexpr std::int64_t kMostTokens = 1 << 14;
  const auto side = form.pixels_per_token();
  const Json published = {{"min_pixels", kLeastArea}, {"max_pixels", kMostTokens * side * side}};
  read(JsonObject(published, "a published image processor"), form);
}

std::optional<ImageProcessorFile> read_image_processor(const std::filesystem::path& folder) {
  constexpr const char* kNested = "image_processor";
  if (const auto all = folder / "processor_config.json"; is_there(all)) {
    const auto file = read_json_object(all);
    if (file.has(kNested))
      return ImageProcessorFile{file, {file.at(kNested), file.source() + ": 'image_processor'"}};
  }
  const auto own = folder / "preprocessor_config.json";
  if (!is_there(own)) return {};
  const auto file = read_json_object(own);
  return ImageProcessorFile{file, file};
}

void check_rescale_factor(const JsonObject& processor) {
  const auto factor = processor.number_or("rescale_factor", 1 / kLevels);
  require(std::abs(factor * kLevels - 1) < 1e-6, processor.source(),
          ": 'rescale_factor' should be 1/", kLevels, ", it is ", factor);
}

void PictureProcessor::read(const JsonObject& json, const PatchForm& form) {
  const auto check_same = [&](const char* key, std::int64_t wanted) {
    (void)json.integer_or(key, wanted, wanted, wanted);
  };
  check_same("patch_size", form.patch);
  check_same("temporal_patch_size", form.frames);
  check_same("merge_size", form.merge);
  for (const auto* const step : {"do_rescale", "do_normalize"})
    require(json.is_set(step), json.source(), ": '", step, "' should be true");
  check_rescale_factor(json);
  side_ = form.pixels_per_token();
  least_area_ = area(json, "min_pixels", "shortest_edge", kLeastArea);
  most_area_ = area(json, "max_pixels", "longest_edge", kMostArea);
  resizes_ = json.is_set("do_resize");
  filter_ = int(json.integer_or("resample", kBicubic, kBilinear, kBicubic));
  mean_ = three_numbers(json, "image_mean", kMean);
  deviation_ = three_numbers(json, "image_std", kDeviation);
}

// Counts like smart_resize of transformers.
PictureSize PictureProcessor::size_seen(PictureSize size) const {
  const auto [shorter, longer] = std::minmax(size.width, size.height);
  require(longer <= std::int64_t(kLongestShapeSeen) * shorter,
          "the text encoder looks at pictures whose longer side is at most ", kLongestShapeSeen,
          " times the shorter, one has ", size.width, "x", size.height);
  const double height = size.height, width = size.width, side = double(side_);
  const auto times = [&](double count) { return int(std::int64_t(count) * side_); };
  const PictureSize nearest{.width = times(std::nearbyint(width / side)),
                            .height = times(std::nearbyint(height / side))};
  const auto area = std::int64_t(nearest.width) * nearest.height;
  if (area > most_area_) {
    const double beta = std::sqrt(height * width / double(most_area_));
    const auto shrunk = [&](double length) {
      return std::max(int(side_), times(std::floor(length / beta / side)));
    };
    return {.width = shrunk(width), .height = shrunk(height)};
  }
  if (area >= least_area_) return nearest;
  const double beta = std::sqrt(double(least_area_) / (height * width));
  return {.width = times(std::ceil(width * beta / side)),
          .height = times(std::ceil(height * beta / side))};
}

PictureSize PictureProcessor::size_shown(PictureSize size) const {
  const auto seen = resizes_ ? size_seen(size) : size;
  require(seen.width % side_ == 0 && seen.height % side_ == 0 && seen.width > 0 && seen.height > 0,
          "the text encoder looks at pictures whose sides are multiples of ", side_, ", one has ",
          size.width, "x", size.height);
  return seen;
}

std::int64_t PictureProcessor::num_tokens(PictureSize size) const {
  const auto shown = size_shown(size);
  return (shown.width / side_) * (shown.height / side_);
}

Tensor PictureProcessor::resized(const Tensor& bytes_13HW) const {
  const PictureSize size{.width = int(bytes_13HW.size(3)), .height = int(bytes_13HW.size(2))};
  const auto seen = size_shown(size);
  if (seen.width == size.width && seen.height == size.height) return bytes_13HW;
  if (filters_ == PictureFilters::kPillow)
    return pillow_resized(bytes_13HW, seen,
                          filter_ == kBicubic ? Resampling::kBicubic : Resampling::kBilinear);
  const std::array<std::int64_t, 2> sides = {seen.height, seen.width};
  return filter_ == kBicubic
             ? at::_upsample_bicubic2d_aa(bytes_13HW, sides, /*align_corners=*/false)
             : at::_upsample_bilinear2d_aa(bytes_13HW, sides, /*align_corners=*/false);
}

// The reference scales means and deviations to levels of 0 to 255.
Tensor PictureProcessor::operator()(const Tensor& picture_13HW) const {
  const auto levels = (picture_13HW.to(at::kCPU, at::kFloat) + 1) * (kLevels / 2);
  const auto seen = resized(levels.round().to(at::kByte))[0].to(at::kFloat);
  const auto in_levels = [](const std::vector<double>& numbers) {
    return (at::tensor(numbers, at::kFloat) * kLevels).view({3, 1, 1});
  };
  return (seen - in_levels(mean_)) / in_levels(deviation_);
}

std::function<std::int64_t(PictureSize)> picture_tokens(const std::filesystem::path& folder,
                                                        const PatchForm& form) {
  return [=](PictureSize size) {
    return (folder.empty() ? PictureProcessor(form) : PictureProcessor(folder, form))
        .num_tokens(size);
  };
}

}  // namespace braid
