#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/utf8.h"
#include "image/over_white.h"
#include "image/png.h"

namespace braid {
namespace {

constexpr int kMaxSide = 65536;
constexpr std::size_t kMaxKey = 79;  // by the standard
// Run-length matching suits filtered pictures: a megapixel takes 30 ms where level 6 takes 200 to
// 400; files are 11 % larger when smooth, 10 % smaller with a little noise (libpng 1.6.39).
constexpr int kStrategy = 3;  // zlib's Z_RLE
constexpr int kFilters = PNG_FILTER_SUB | PNG_FILTER_UP | PNG_FILTER_AVG;

// `utf8` as Latin-1; nothing if it does not fit. Throws InputError if it is not UTF-8.
std::optional<std::string> latin1_of_utf8(std::string_view utf8) {
  require(is_valid_utf8(utf8), "text for a PNG should be UTF-8, '", utf8, "' is not");
  std::string latin1;
  bool fits = true;
  while (!utf8.empty()) {
    const auto character = decode_utf8(utf8, 0);
    require(character.code != 0, "text for a PNG cannot hold a NUL character");
    fits = fits && character.code < 0x100;
    latin1 += char(character.code);
    utf8.remove_prefix(character.size);
  }
  if (!fits) return {};
  return latin1;
}

// The standard's rule; libpng would silently change the key.
bool is_key(std::string_view latin1) {
  const auto printable = [](char c) {
    const auto byte = std::uint8_t(c);
    return (byte >= 32 && byte <= 126) || byte >= 161;
  };
  return !latin1.empty() && latin1.size() <= kMaxKey &&
         std::all_of(latin1.begin(), latin1.end(), printable) && latin1.front() != ' ' &&
         latin1.back() != ' ' && latin1.find("  ") == latin1.npos;
}

// Text entries in libpng's form: pointers into strings owned here.
class TextChunks {
 public:
  explicit TextChunks(const PngText& text) {
    strings_.reserve(2 * text.size());  // the pointers below stay valid
    for (const auto& [key, value] : text) add(key, value);
  }
  TextChunks(const TextChunks&) = delete;
  TextChunks& operator=(const TextChunks&) = delete;

  std::vector<png_text>& chunks() { return chunks_; }

 private:
  void add(const std::string& key, const std::string& value) {
    const auto latin1_key = latin1_of_utf8(key);
    require(latin1_key && is_key(*latin1_key), "a PNG cannot hold a text named '", key,
            "': names have 1 to 79 Latin-1 characters");
    const auto latin1 = latin1_of_utf8(value);
    png_text chunk{};
    chunk.compression = latin1 ? PNG_TEXT_COMPRESSION_NONE : PNG_ITXT_COMPRESSION_NONE;
    chunk.key = strings_.emplace_back(*latin1_key).data();
    chunk.text = strings_.emplace_back(latin1 ? *latin1 : value).data();
    chunk.text_length = strings_.back().size();
    chunks_.push_back(chunk);
  }

  std::vector<std::string> strings_;
  std::vector<png_text> chunks_;
};

struct Output {
  std::string bytes;
  char error[80] = {};  // not a std::string: written just before a longjmp
};

void append(png_structp png, png_bytep data, png_size_t size) {
  auto& output = *static_cast<Output*>(png_get_io_ptr(png));
  bool done = false;
  try {
    output.bytes.append(reinterpret_cast<const char*>(data), size);
    done = true;
  } catch (const std::exception&) {
  }
  if (!done) png_error(png, "out of memory");
}

[[noreturn]] void fail_to_write(png_structp png, png_const_charp message) {
  auto& output = *static_cast<Output*>(png_get_error_ptr(png));
  std::strncpy(output.error, message, sizeof output.error - 1);
  png_longjmp(png, 1);
}

void ignore_writing(png_structp, png_const_charp) {}

struct Writer {
  png_structp png = nullptr;
  png_infop info = nullptr;
  explicit Writer(Output& output)
      : png(png_create_write_struct(PNG_LIBPNG_VER_STRING, &output, fail_to_write, ignore_writing)),
        info(png ? png_create_info_struct(png) : nullptr) {
    if (png) png_set_write_fn(png, &output, append, nullptr);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { png_destroy_write_struct(&png, &info); }
};

// What is written: rows of three or four bytes per pixel.
struct Rows {
  int width, height, channels;
  const std::uint8_t* bytes;
};

// libpng's errors longjmp out of this function: create no object with a destructor in it.
bool write(const Writer& writer, const Rows& rows, std::vector<png_text>& text) {
  if (setjmp(png_jmpbuf(writer.png))) return false;
  png_set_user_limits(writer.png, kMaxSide, kMaxSide);
  png_set_compression_level(writer.png, 1);
  png_set_compression_strategy(writer.png, kStrategy);
  png_set_filter(writer.png, PNG_FILTER_TYPE_BASE, kFilters);
  png_set_IHDR(writer.png, writer.info, png_uint_32(rows.width), png_uint_32(rows.height), 8,
               rows.channels == 4 ? PNG_COLOR_TYPE_RGB_ALPHA : PNG_COLOR_TYPE_RGB,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!text.empty()) png_set_text(writer.png, writer.info, text.data(), int(text.size()));
  png_write_info(writer.png, writer.info);
  const auto row_bytes = std::size_t(rows.width) * std::size_t(rows.channels);
  for (int y = 0; y < rows.height; ++y)
    png_write_row(writer.png, rows.bytes + std::size_t(y) * row_bytes);
  png_write_end(writer.png, nullptr);
  return true;
}

}  // namespace

PngText writable_text(const PngText& text) {
  PngText writable;
  for (const auto& entry : text) {
    try {
      const TextChunks fits(PngText{entry});
      writable.push_back(entry);
    } catch (const InputError&) {  // it is left out
    }
  }
  return writable;
}

std::string encode_png(int width, int height, std::span<const std::uint8_t> rgb,
                       const PngText& text, std::span<const std::uint8_t> alpha) {
  require(width > 0 && height > 0 && width <= kMaxSide && height <= kMaxSide,
          "a picture should have 1 to ", kMaxSide, " pixels per side, it has ", width, "x", height);
  require(rgb.size() == std::size_t(width) * std::size_t(height) * 3, "a ", width, "x", height,
          " picture should have ", std::size_t(width) * std::size_t(height) * 3, " values, it has ",
          rgb.size());
  std::vector<std::uint8_t> rgba;
  if (!alpha.empty()) rgba = joined_rgba(rgb, alpha);
  const Rows rows{.width = width,
                  .height = height,
                  .channels = alpha.empty() ? 3 : 4,
                  .bytes = alpha.empty() ? rgb.data() : rgba.data()};
  TextChunks chunks(text);
  Output output;
  const Writer writer(output);
  check(writer.info, "cannot encode a PNG: out of memory");
  check(write(writer, rows, chunks.chunks()), "cannot encode a PNG: ", output.error);
  return std::move(output.bytes);
}

}  // namespace braid
