#include "image/file_form.h"

#include "image/exif.h"
#include "image/lossy/lossy_encode.h"
#include "image/over_white.h"
#include "image/parameters.h"

namespace braid {

const char* format_name(FileForm::Format format) {
  using Format = FileForm::Format;
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
  using Format = FileForm::Format;
  if (!alpha.empty() && !keeps_alpha(form)) {
    const auto opaque = over_white(RgbaPixels{width, height, joined_rgba(rgb, alpha)});
    return encoded(form, width, height, opaque.rgb, text);
  }
  if (form.format == Format::kPng) return encode_png(width, height, rgb, text, alpha);
  const auto exif = text.empty() ? std::string() : exif_of_comment(parameters_of(text));
  const auto encode = form.format == Format::kJpeg ? encode_jpeg : encode_webp;
  if (alpha.empty()) return encode(width, height, rgb, form.quality, exif);
  return encode_webp_with_alpha(width, height, joined_rgba(rgb, alpha), form.quality, exif);
}

}  // namespace braid
