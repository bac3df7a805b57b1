#include "image/picture_file.h"

#include <algorithm>

#include "base/error.h"
#include "base/foreign_file.h"
#include "base/hexadecimal.h"
#include "image/exif.h"
#include "image/lossy/jpeg_decode.h"
#include "image/lossy/webp_decode.h"
#include "image/orientation.h"
#include "image/parameters.h"
#include "image/png_chunks.h"

namespace braid {
namespace {

using namespace std::literals;

// ImageMagick's EXIF data as text: an empty line, the kind, the size, then hexadecimal digits.
std::string bytes_of_raw_profile(std::string_view text) {
  constexpr int kLinesBefore = 3;
  for (int line = 0; line < kLinesBefore; ++line)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  std::string bytes;
  int high = -1;
  for (const char c : text) {
    if (c == '\n') continue;
    const int value = hex_value(c);
    if (value < 0) return "";
    if (high >= 0) bytes += char(high << 4 | value);
    high = high >= 0 ? -1 : value;
  }
  return bytes;
}

int orientation_of_png(std::string_view png, const std::string& source) {
  std::string exif, xmp;
  for (const auto& [key, value] : readable_png_text(png, source)) {
    if (key == "Raw profile type exif") exif = bytes_of_raw_profile(value);
    if (key == "XML:com.adobe.xmp") xmp = value;
  }
  for (const auto& chunk : png_chunks(png, source))
    if (chunk.type == "eXIf") return orientation_of(chunk.bytes, xmp);
  return orientation_of(exif, xmp);
}

bool is_jpeg(std::string_view bytes) { return bytes.starts_with("\xff\xd8\xff"sv); }
bool is_webp(std::string_view bytes) {
  return bytes.size() >= 12 && bytes.starts_with("RIFF"sv) && bytes.substr(8, 4) == "WEBP"sv;
}

[[noreturn]] void refuse_file(std::string_view bytes, const std::string& source) {
  require(!bytes.empty(), source, " should be a picture, it is empty");
  const auto kind = foreign_kind(std::as_bytes(std::span(bytes)));
  throw InputError(source + " should be a PNG, JPEG or WebP picture, it is " +
                   (kind.empty() ? "none of these" : kind));
}

Pixels decode_as(std::string_view bytes, const std::string& source, std::uint64_t max_pixels,
                 Flatten& flatten) {
  if (begins_like_png(bytes))
    return upright(decode_png(bytes, source, max_pixels, flatten),
                   orientation_of_png(bytes, source));
  if (is_webp(bytes)) return decode_webp(bytes, source, max_pixels, flatten);
  refuse_file(bytes, source);
}

}  // namespace

StoredSize stored_size(std::string_view bytes, const std::string& source) {
  if (is_jpeg(bytes)) return jpeg_size(bytes, source);
  if (is_webp(bytes)) return webp_size(bytes, source);
  if (!begins_like_png(bytes)) refuse_file(bytes, source);
  const auto header = png_header(png_chunks(bytes, source).front(), source);
  return {header.width, header.height};
}

bool may_store_rgba(std::string_view bytes, const std::string& source) {
  if (!begins_like_png(bytes)) return is_webp(bytes);
  return png_header(png_chunks(bytes, source).front(), source).channels == 4;
}

Pixels decode_picture(std::string_view bytes, const std::string& source, std::uint64_t max_pixels,
                      Flatten& flatten) {
  if (is_jpeg(bytes)) return decode_jpeg(bytes, source, max_pixels);
  return decode_as(bytes, source, max_pixels, flatten);
}

Pixels decode_meaning(std::string_view bytes, const std::string& source, std::uint64_t max_pixels) {
  return decode_picture(bytes, source, max_pixels, without_transparency);
}

std::optional<Pixels> decode_transparency(std::string_view bytes, const std::string& source,
                                          std::uint64_t max_pixels) {
  if (is_jpeg(bytes)) return {};
  auto seen_through = decode_as(bytes, source, max_pixels, transparency);
  const auto is_opaque = [](std::uint8_t value) { return value == 0; };
  if (std::ranges::all_of(seen_through.rgb, is_opaque)) return {};
  return seen_through;
}

PngText read_picture_text(std::string_view bytes, const std::string& source) {
  if (begins_like_png(bytes)) return without_own_parameters(read_png_text(bytes, source));
  if (!is_jpeg(bytes) && !is_webp(bytes)) refuse_file(bytes, source);
  const auto comment = exif_comment(is_jpeg(bytes) ? exif_of_jpeg(bytes) : exif_of_webp(bytes));
  return comment && !comment->empty() ? text_of_parameters(*comment) : PngText();
}

PngText readable_picture_text(std::string_view bytes, const std::string& source) {
  return begins_like_png(bytes) ? readable_png_text(bytes, source)
                                : read_picture_text(bytes, source);
}

}  // namespace braid
