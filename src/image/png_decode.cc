#include <png.h>

#include <csetjmp>
#include <cstring>

#include "base/byte_order.h"
#include "base/error.h"
#include "image/png.h"
#include "image/png_chunks.h"

namespace braid {
namespace {

constexpr std::uint64_t kMaxInflation = 1032;  // of deflate: 258 bytes in two bits

struct Input {
  std::string_view rest;
  char error[80] = {};  // not a std::string: written just before a longjmp
};

void take(png_structp png, png_bytep data, png_size_t size) {
  auto& input = *static_cast<Input*>(png_get_io_ptr(png));
  if (size > input.rest.size()) png_error(png, "it ends too early");
  std::memcpy(data, input.rest.data(), size);
  input.rest.remove_prefix(size);
}

[[noreturn]] void fail_to_read(png_structp png, png_const_charp message) {
  auto& input = *static_cast<Input*>(png_get_error_ptr(png));
  std::strncpy(input.error, message, sizeof input.error - 1);
  png_longjmp(png, 1);
}

void ignore_reading(png_structp, png_const_charp) {}

struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  explicit Reader(Input& input)
      : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &input, fail_to_read, ignore_reading)),
        info(png ? png_create_info_struct(png) : nullptr) {
    if (!png) return;
    png_set_read_fn(png, &input, take);
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // the caller counts the pixels
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

// The transformations that turn any stored form into rows of 8-bit RGBA.
void ask_for_rgba(png_structp png) {
  png_set_expand(png);  // palettes, 1 to 4 bits, transparent colours
  png_set_scale_16(png);
  png_set_gray_to_rgb(png);
  png_set_add_alpha(png, 255, PNG_FILLER_AFTER);
}

// libpng's errors longjmp out of this function: create no object with a destructor in it.
bool read(const Reader& reader, RgbaPixels& image) {
  if (setjmp(png_jmpbuf(reader.png))) return false;
  png_set_chunk_cache_max(reader.png, 1);  // skips text and unknown chunks
  png_read_info(reader.png, reader.info);
  ask_for_rgba(reader.png);
  const int passes = png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  const auto row_bytes = std::size_t(image.width) * 4;
  if (png_get_rowbytes(reader.png, reader.info) != row_bytes) return false;
  for (int pass = 0; pass < passes; ++pass) {
    for (int y = 0; y < image.height; ++y) {
      png_read_row(reader.png, image.rgba.data() + std::size_t(y) * row_bytes, nullptr);
    }
  }
  png_read_end(reader.png, nullptr);
  return true;
}

// Some programs mark pictures as animations of one frame.
bool is_animated(const PngChunk& chunk) {
  if (chunk.type != "acTL") return false;
  return chunk.bytes.size() < 4 || big_endian(chunk.bytes.data(), 4) > 1;
}

// An image of the header's size, if the file is large enough to hold one.
RgbaPixels image_for(const std::vector<PngChunk>& chunks, const std::string& source,
                     std::uint64_t max_pixels) {
  const auto header = png_header(chunks.front(), source);
  const auto pixels = std::uint64_t(header.width) * header.height;
  require_few_pixels(header.width, header.height, max_pixels, source);
  std::uint64_t stored = 0;
  for (const auto& chunk : chunks) {
    stored += chunk.type == "IDAT" ? chunk.bytes.size() : 0;
    require(!is_animated(chunk), source, " is an animated PNG: give one picture");
  }
  require(pixels * std::uint64_t(header.bits_per_pixel) / 8 <= stored * kMaxInflation, source,
          " is a damaged PNG: ", stored, " bytes cannot hold ", header.width, "x", header.height,
          " pixels");
  return {int(header.width), int(header.height), std::vector<std::uint8_t>(pixels * 4)};
}

}  // namespace

Pixels decode_png(std::string_view png, const std::string& source, std::uint64_t max_pixels,
                  Flatten& flatten) {
  auto image = image_for(png_chunks(png, source), source, max_pixels);
  Input input{png};
  const Reader reader(input);
  check(reader.info, "cannot decode ", source, ": out of memory");
  require(read(reader, image), source, " is a damaged PNG: ", input.error);
  return flatten(image);
}

}  // namespace braid
