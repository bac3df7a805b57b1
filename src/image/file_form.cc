#include "image/file_form.h"

#include "image/exif.h"
#include "image/lossy/lossy_encode.h"
#include "image/over_white.h"
#include "image/parameters.h"

namespace braid {
namespace {

using Format = FileForm::Format;

constexpr const char* kCutMark = "...";

std::size_t most_exif(const FileForm& form) {
  return form.format == Format::kJpeg ? kMostJpegExif : std::string::npos;
}

// Cuts each value that is longer than `longest` bytes, between characters.
PngText shortened(PngText text, std::size_t longest) {
  for (auto& [key, value] : text) {
    if (value.size() <= longest) continue;
    auto end = longest;
    while (end > 0 && (std::uint8_t(value[end]) & 0xc0) == 0x80) --end;
    value = value.substr(0, end) + kCutMark;
  }
  return text;
}

std::string exif_of(const PngText& text, std::size_t most) {
  return exif_of_comment(parameters_of(text), most);
}

// The longest values are cut, which are prompts, so that the settings stay.
std::string exif_within(const PngText& text, std::size_t most) {
  auto exif = exif_of(text, most);
  if (exif.size() <= most) return exif;
  std::size_t fits = 0, too_long = 0;
  for (const auto& [key, value] : text) too_long = std::max(too_long, value.size());
  while (too_long - fits > 1) {
    const auto longest = (fits + too_long) / 2;
    (exif_of(shortened(text, longest), most).size() <= most ? fits : too_long) = longest;
  }
  return exif_of(shortened(text, fits), most);
}

}  // namespace

bool is_text_cut(const FileForm& form, const PngText& text) {
  return form.format == Format::kJpeg && exif_of(text, kMostJpegExif).size() > kMostJpegExif;
}

const char* format_name(FileForm::Format format) {
  return format == Format::kJpeg ? "jpeg" : format == Format::kWebp ? "webp" : "png";
}

std::string content_type_of(const FileForm& form) {
  return std::string("image/") + format_name(form.format);
}

void check_sides(const FileForm& form, int width, int height) {
  if (form.format == FileForm::Format::kJpeg) check_jpeg_sides(width, height);
  if (form.format == FileForm::Format::kWebp) check_webp_sides(width, height);
}

std::string encoded(const FileForm& form, int width, int height, std::span<const std::uint8_t> rgb,
                    const PngText& text, std::span<const std::uint8_t> alpha) {
  if (!alpha.empty() && !keeps_alpha(form)) {
    const auto opaque = over_white(RgbaPixels{width, height, joined_rgba(rgb, alpha)});
    return encoded(form, width, height, opaque.rgb, text);
  }
  if (form.format == Format::kPng)
    return encode_png(width, height, rgb, with_parameters(text), alpha);
  const auto exif = text.empty() ? std::string() : exif_within(text, most_exif(form));
  const auto encode = form.format == Format::kJpeg ? encode_jpeg : encode_webp;
  if (alpha.empty()) return encode(width, height, rgb, form.quality, exif);
  return encode_webp_with_alpha(width, height, joined_rgba(rgb, alpha), form.quality, exif);
}

}  // namespace braid
