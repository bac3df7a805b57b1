#include "image/exif.h"

#include <algorithm>
#include <cstdint>

#include "base/byte_order.h"
#include "base/error.h"
#include "base/utf8.h"
#include "image/webp_chunks.h"

namespace braid {
namespace {

using namespace std::literals;

constexpr std::uint32_t kOrientationTag = 0x0112, kExifTag = 0x8769, kCommentTag = 0x9286;
constexpr std::uint32_t kShort = 3, kLong = 4, kUndefined = 7;  // types of values
// Types of whole numbers that Pillow reads an orientation of, with their sizes.
constexpr std::pair<std::uint32_t, std::size_t> kIntegers[] = {
    {kShort, 2}, {kLong, 4}, {6, 1}, {8, 2}, {9, 4}};
constexpr std::size_t kEntryBytes = 12;
constexpr auto kExifName = "Exif\0\0"sv;  // before the data in a JPEG, and in some other files
constexpr auto kXmpName = "http://ns.adobe.com/xap/1.0/\0"sv;  // likewise
constexpr auto kUtf16 = "UNICODE\0"sv, kAscii = "ASCII\0\0\0"sv;

std::string_view without_names(std::string_view exif) {
  while (exif.starts_with(kExifName)) exif.remove_prefix(kExifName.size());
  return exif;
}

// Numbers in a TIFF structure, in its byte order; nothing past its end.
class Tiff {
 public:
  explicit Tiff(std::string_view exif)
      : bytes_(without_names(exif)), is_big_(bytes_.starts_with("MM")) {}

  bool is_big() const { return is_big_; }

  std::optional<std::uint32_t> number(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) return {};
    const char* const first = bytes_.data() + at;
    return std::uint32_t(is_big_ ? big_endian(first, size) : little_endian(first, size));
  }
  // The first directory; nullopt if this is not TIFF.
  std::optional<std::uint32_t> directory() const {
    const bool is_tiff = bytes_.starts_with("MM") || bytes_.starts_with("II");
    return is_tiff && number(2, 2) == 42u ? number(4, 4) : std::nullopt;
  }
  // The position of the entry with this tag and type.
  std::optional<std::size_t> entry(std::size_t directory, std::uint32_t tag,
                                   std::uint32_t type) const {
    const auto entries = number(directory, 2).value_or(0);
    for (std::size_t i = 0; i < entries; ++i) {
      const auto at = directory + 2 + i * kEntryBytes;
      if (number(at, 2) == tag && number(at + 2, 2) == type) return at;
    }
    return {};
  }
  // The bytes of an entry, stored outside its directory.
  std::string_view bytes(std::size_t entry) const {
    const std::size_t size = number(entry + 4, 4).value_or(0),
                      at = number(entry + 8, 4).value_or(0);
    return at <= bytes_.size() && size <= bytes_.size() - at ? bytes_.substr(at, size) : "";
  }

 private:
  std::string_view bytes_;
  bool is_big_;
};

constexpr bool is_high(std::uint32_t unit) { return unit >= 0xd800 && unit < 0xdc00; }
constexpr bool is_low(std::uint32_t unit) { return unit >= 0xdc00 && unit < 0xe000; }

// Unpaired surrogates become U+FFFD.
std::string utf8_of_utf16(std::string_view bytes, bool is_big) {
  const auto unit = [&](std::size_t at) {
    const char* const first = bytes.data() + at;
    return std::uint32_t(is_big ? big_endian(first, 2) : little_endian(first, 2));
  };
  std::string text;
  for (std::size_t at = 0; at + 1 < bytes.size(); at += 2) {
    auto code_point = unit(at);
    if (is_high(code_point) && at + 3 < bytes.size() && is_low(unit(at + 2))) {
      at += 2;
      code_point = 0x10000 + ((code_point - 0xd800) << 10) + (unit(at) - 0xdc00);
    } else if (is_high(code_point) || is_low(code_point)) {
      code_point = 0xfffd;
    }
    append_utf8(text, code_point);
  }
  return text;
}

std::string utf16_of_utf8(std::string_view text) {
  require(is_valid_utf8(text), "the text of a picture is not UTF-8");
  std::string bytes;
  while (!text.empty()) {
    const auto character = decode_utf8(text, 0);
    text.remove_prefix(character.size);
    auto code_point = std::uint32_t(character.code);
    if (code_point >= 0x10000) {
      code_point -= 0x10000;
      append_big_endian(bytes, 0xd800 + (code_point >> 10), 2);
      code_point = 0xdc00 + (code_point & 0x3ff);
    }
    append_big_endian(bytes, code_point, 2);
  }
  return bytes;
}

// A directory with a single entry, whose value follows it.
void append_directory(std::string& tiff, std::uint32_t tag, std::uint32_t type,
                      std::uint32_t count) {
  append_big_endian(tiff, 1, 2);
  append_big_endian(tiff, tag, 2);
  append_big_endian(tiff, type, 2);
  append_big_endian(tiff, count, 4);
  append_big_endian(tiff, std::uint32_t(tiff.size()) + 8, 4);
  append_big_endian(tiff, 0, 4);  // no further directory
}

// Some programs write UTF-16 in the order of a little-endian file. Read the other way round, most
// letters, digits and spaces are U+xx00.
bool seems_little_endian(std::string_view utf16) {
  std::size_t characters = 0, swapped = 0;
  for (std::size_t at = 0; at + 1 < utf16.size(); at += 2) {
    const auto unit = big_endian(utf16.data() + at, 2);
    characters += unit != 0;
    swapped += unit != 0 && unit % 256 == 0;
  }
  return 2 * swapped > characters;
}

// A char has a sign on some machines only.
bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c != 0 && std::uint8_t(c) < 0x80; });
}

std::string without_padding(std::string text) {
  text.erase(text.find_last_not_of('\0') + 1);
  return text;
}

std::optional<int> stated_orientation(std::string_view exif) {
  const Tiff tiff(exif);
  const auto directory = tiff.directory();
  if (!directory) return {};
  for (const auto& [type, size] : kIntegers)
    if (const auto entry = tiff.entry(*directory, kOrientationTag, type)) {
      const auto value = tiff.number(*entry + 8, size).value_or(1);
      return value >= 1 && value <= 8 ? int(value) : 1;
    }
  return {};
}

// As an attribute or an element, found by the pattern that Pillow looks for.
int xmp_orientation(std::string_view xmp) {
  constexpr auto kName = "tiff:Orientation"sv;
  while (true) {
    const auto name = xmp.find(kName);
    if (name == xmp.npos) return 1;
    xmp.remove_prefix(name + kName.size());
    const std::size_t before = xmp.starts_with("=\"") ? 2 : xmp.starts_with('>') ? 1 : 0;
    if (before == 0 || before == xmp.size()) continue;
    const char digit = xmp[before];
    if (digit >= '0' && digit <= '9') return digit >= '1' && digit <= '8' ? digit - '0' : 1;
  }
}

// Markers of a JPEG that no size follows.
bool stands_alone(char marker) {
  return marker == '\0' || marker == '\x01' || (marker >= '\xd0' && marker <= '\xd8');
}

// A JPEG starts with a list of segments: 0xff, a marker, a size that includes itself. Any number of
// fill bytes, 0xff, may stand before a marker, and readers skip other bytes between segments.
std::string_view segment_of_jpeg(std::string_view jpeg, std::string_view name) {
  auto rest = jpeg.substr(std::min<std::size_t>(jpeg.size(), 2));
  while (true) {
    rest.remove_prefix(std::min(rest.find('\xff'), rest.size()));
    rest.remove_prefix(std::min(rest.find_first_not_of('\xff'), rest.size()));
    if (rest.size() < 3 || rest[0] == '\xda') return {};
    const char marker = rest[0];
    rest.remove_prefix(1);
    if (stands_alone(marker)) continue;
    const auto size = std::size_t(big_endian(rest.data(), 2));
    if (size < 2 || size > rest.size()) return {};
    const auto data = rest.substr(2, size - 2);
    if (marker == '\xe1' && data.starts_with(name)) return data.substr(name.size());
    rest.remove_prefix(size);
  }
}

struct WebpMetadata {
  std::string_view name;
  int flag;  // of VP8X
};
constexpr WebpMetadata kWebpExif{"EXIF", 0x08}, kWebpXmp{"XMP ", 0x04};

// Readers ignore a chunk that the file's head does not announce (WebP Container Specification).
std::string_view metadata_of_webp(std::string_view webp, const WebpMetadata& metadata) {
  WebpChunks chunks(webp);
  const auto head = chunks.next();
  const bool is_announced = head && head->name == "VP8X" && !head->bytes.empty() &&
                            (head->bytes.front() & metadata.flag) != 0;
  if (!is_announced) return {};
  while (const auto chunk = chunks.next())
    if (chunk->name == metadata.name) return chunk->bytes;
  return {};
}

}  // namespace

int exif_orientation(std::string_view exif) { return stated_orientation(exif).value_or(1); }

int orientation_of(std::string_view exif, std::string_view xmp) {
  const auto stated = stated_orientation(exif);
  return stated ? *stated : xmp_orientation(xmp);
}

std::optional<std::string> exif_comment(std::string_view exif) {
  const Tiff tiff(exif);
  const auto directory = tiff.directory();
  const auto link = directory ? tiff.entry(*directory, kExifTag, kLong) : std::nullopt;
  const auto details = link ? tiff.number(*link + 8, 4) : std::nullopt;
  const auto entry = details ? tiff.entry(*details, kCommentTag, kUndefined) : std::nullopt;
  if (!entry) return {};
  const auto comment = tiff.bytes(*entry);
  if (comment.starts_with(kUtf16)) {
    const auto utf16 = comment.substr(kUtf16.size());
    return without_padding(utf8_of_utf16(utf16, tiff.is_big() || !seems_little_endian(utf16)));
  }
  if (!comment.starts_with(kAscii)) return {};
  const auto text = without_padding(std::string(comment.substr(kAscii.size())));
  return is_ascii(text) ? std::optional(text) : std::nullopt;
}

namespace {

std::string exif_of_coded(const std::string& text) {
  std::string tiff = "MM\0*\0\0\0\x08"s;
  append_directory(tiff, kExifTag, kLong, 1);
  append_directory(tiff, kCommentTag, kUndefined, std::uint32_t(text.size()));
  return tiff + text;
}

}  // namespace

std::string exif_of_comment(std::string_view comment, std::size_t most) {
  auto exif = exif_of_coded(std::string(kUtf16) + utf16_of_utf8(comment));
  if (exif.size() <= most || !is_ascii(comment)) return exif;
  return exif_of_coded(std::string(kAscii).append(comment));
}

std::string_view exif_of_jpeg(std::string_view jpeg) { return segment_of_jpeg(jpeg, kExifName); }
std::string_view xmp_of_jpeg(std::string_view jpeg) { return segment_of_jpeg(jpeg, kXmpName); }

std::string_view exif_of_webp(std::string_view webp) {
  return without_names(metadata_of_webp(webp, kWebpExif));
}
std::string_view xmp_of_webp(std::string_view webp) { return metadata_of_webp(webp, kWebpXmp); }

}  // namespace braid
