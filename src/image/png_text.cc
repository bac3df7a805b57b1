// Text chunks: Latin-1 (tEXt), compressed Latin-1 (zTXt) and UTF-8 (iTXt).
#include <zlib.h>

#include <optional>

#include "base/error.h"
#include "base/utf8.h"
#include "image/png.h"
#include "image/png_chunks.h"

namespace braid {
namespace {

constexpr int kMostPassedOver = 16;  // each may have been unpacked up to kMaxPngText

std::string utf8_of_latin1(std::string_view latin1) {
  std::string utf8;
  for (const char c : latin1) append_utf8(utf8, std::uint8_t(c));
  return utf8;
}

// Removes the text up to the next NUL from the front of `rest`; nothing if there is no NUL.
std::optional<std::string_view> field(std::string_view& rest) {
  const auto end = rest.find('\0');
  if (end == rest.npos) return {};
  const auto text = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return text;
}

struct Inflater {
  z_stream stream{};
  Inflater() { check(inflateInit(&stream) == Z_OK, "out of memory"); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }
};

std::string unpack(std::string_view packed, const std::string& source) {
  Inflater inflater;
  auto& stream = inflater.stream;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = uInt(packed.size());
  std::string text;
  int state = Z_OK;
  while (state == Z_OK) {
    char buffer[4096];
    stream.next_out = reinterpret_cast<Bytef*>(buffer);
    stream.avail_out = sizeof buffer;
    state = inflate(&stream, Z_NO_FLUSH);
    text.append(buffer, sizeof buffer - stream.avail_out);
    require(text.size() <= kMaxPngText, source, " holds more than ", kMaxPngText, " bytes of text");
  }
  require(state == Z_STREAM_END, source, " is a damaged PNG: a text cannot be decompressed");
  return text;
}

// After the keyword follow compression flag and method, language tag, translated keyword and text.
std::optional<std::string> international_text(std::string_view rest, const std::string& source) {
  if (rest.size() < 2) return {};
  const bool packed = rest[0] != 0;
  rest.remove_prefix(2);
  if (!field(rest) || !field(rest)) return {};
  auto text = packed ? unpack(rest, source) : std::string(rest);
  if (!is_valid_utf8(text)) return {};
  return text;
}

// The value of a text chunk after its keyword; nothing if the chunk is malformed.
std::optional<std::string> value_of(std::string_view type, std::string_view rest,
                                    const std::string& source) {
  if (type == "tEXt") return utf8_of_latin1(rest);
  if (type == "iTXt") return international_text(rest, source);
  if (rest.empty() || rest[0] != 0) return {};  // zTXt: only one method is defined
  return utf8_of_latin1(unpack(rest.substr(1), source));
}

bool is_text(const PngChunk& chunk) {
  return chunk.type == "tEXt" || chunk.type == "zTXt" || chunk.type == "iTXt";
}

// Adds the entry of a chunk to a text that has `total` bytes.
void add_entry(const PngChunk& chunk, const std::string& source, PngText& text,
               std::size_t& total) {
  auto rest = chunk.bytes;
  const auto key = field(rest);
  auto value = key ? value_of(chunk.type, rest, source) : std::nullopt;
  require(value.has_value(), source, " is a damaged PNG: a ", chunk.type, " chunk is malformed");
  const auto size = key->size() + value->size();
  require(size <= kMaxPngText - total, source, " holds more than ", kMaxPngText, " bytes of text");
  total += size;
  text.emplace_back(utf8_of_latin1(*key), std::move(*value));
}

}  // namespace

PngText read_png_text(std::string_view png, const std::string& source) {
  PngText text;
  std::size_t total = 0;
  for (const auto& chunk : png_chunks(png, source))
    if (is_text(chunk)) add_entry(chunk, source, text, total);
  return text;
}

PngText readable_png_text(std::string_view png, const std::string& source) {
  PngText text;
  std::size_t total = 0;
  int passed_over = 0;
  for (const auto& chunk : png_chunks(png, source)) {
    if (!is_text(chunk) || passed_over == kMostPassedOver) continue;
    try {
      add_entry(chunk, source, text, total);
    } catch (const InputError&) {
      ++passed_over;
    }
  }
  return text;
}

}  // namespace braid
