#include "image/exif.h"

#include <algorithm>
#include <cstdint>

#include "base/byte_order.h"
#include "base/error.h"
#include "base/utf8.h"

namespace braid {
namespace {

using namespace std::literals;

constexpr std::uint32_t kOrientationTag = 0x0112, kExifTag = 0x8769, kCommentTag = 0x9286;
constexpr std::uint32_t kShort = 3, kLong = 4, kUndefined = 7;  // types of values
constexpr std::size_t kEntryBytes = 12;
constexpr auto kExifName = "Exif\0\0"sv;  // before the data in a JPEG, and in some WebPs
constexpr auto kUtf16 = "UNICODE\0"sv, kAscii = "ASCII\0\0\0"sv;

// Numbers in a TIFF structure, in its byte order; nothing past its end.
class Tiff {
 public:
  explicit Tiff(std::string_view bytes) : bytes_(bytes), is_big_(bytes.starts_with("MM")) {}

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

}  // namespace

int exif_orientation(std::string_view bytes) {
  const Tiff tiff(bytes);
  const auto directory = tiff.directory();
  const auto entry = directory ? tiff.entry(*directory, kOrientationTag, kShort) : std::nullopt;
  const auto value = entry ? tiff.number(*entry + 8, 2).value_or(1) : 1;
  return value >= 1 && value <= 8 ? int(value) : 1;
}

std::optional<std::string> exif_comment(std::string_view bytes) {
  const Tiff tiff(bytes);
  const auto directory = tiff.directory();
  const auto link = directory ? tiff.entry(*directory, kExifTag, kLong) : std::nullopt;
  const auto details = link ? tiff.number(*link + 8, 4) : std::nullopt;
  const auto entry = details ? tiff.entry(*details, kCommentTag, kUndefined) : std::nullopt;
  if (!entry) return {};
  const auto comment = tiff.bytes(*entry);
  if (comment.starts_with(kUtf16)) return utf8_of_utf16(comment.substr(kUtf16.size()), true);
  const auto text = comment.substr(std::min(comment.size(), kAscii.size()));
  const bool is_ascii = std::all_of(text.begin(), text.end(), [](char c) { return c > 0; });
  return comment.starts_with(kAscii) && is_ascii ? std::optional(std::string(text)) : std::nullopt;
}

std::string exif_of_comment(std::string_view comment) {
  const auto text = std::string(kUtf16) + utf16_of_utf8(comment);
  std::string tiff = "MM\0*\0\0\0\x08"s;
  append_directory(tiff, kExifTag, kLong, 1);
  append_directory(tiff, kCommentTag, kUndefined, std::uint32_t(text.size()));
  return tiff + text;
}

// A JPEG starts with a list of segments: 0xff, a marker, a size that includes itself.
std::string_view exif_of_jpeg(std::string_view jpeg) {
  auto rest = jpeg.substr(std::min<std::size_t>(jpeg.size(), 2));
  while (rest.size() >= 4 && rest[0] == '\xff' && rest[1] != '\xda') {
    if (rest[1] == '\xff') {  // any number of fill bytes
      rest.remove_prefix(1);
      continue;
    }
    const auto size = std::size_t(big_endian(rest.data() + 2, 2));
    if (size < 2 || size + 2 > rest.size()) break;
    const auto data = rest.substr(4, size - 2);
    if (rest[1] == '\xe1' && data.starts_with(kExifName)) return data.substr(kExifName.size());
    rest.remove_prefix(size + 2);
  }
  return {};
}

// A WebP is a list of chunks: a name, a size, that many bytes, and a padding byte if that is odd.
std::string_view exif_of_webp(std::string_view webp) {
  constexpr std::size_t kRiffHeader = 12, kChunkHeader = 8;
  auto rest = webp.substr(std::min(webp.size(), kRiffHeader));
  while (rest.size() >= kChunkHeader) {
    const auto size = std::size_t(little_endian(rest.data() + 4, 4));
    const auto name = rest.substr(0, 4);
    rest.remove_prefix(kChunkHeader);
    if (size > rest.size()) break;
    const auto data = rest.substr(0, size);
    if (name == "EXIF") return data.starts_with(kExifName) ? data.substr(kExifName.size()) : data;
    rest.remove_prefix(std::min(rest.size(), size + size % 2));
  }
  return {};
}

}  // namespace braid
