#include "image/lossy/lossy_encode.h"

#include <cstdio>  // before jpeglib.h, which needs it

#include <jpeglib.h>
#include <webp/encode.h>

#include <csetjmp>
#include <cstdlib>
#include <memory>

#include "base/byte_order.h"
#include "base/error.h"

namespace braid {
namespace {

constexpr int kFullColour = 90;  // the quality

void check_sides(int width, int height, int largest, const char* format) {
  require(width >= 1 && height >= 1 && width <= largest && height <= largest, "the sides of a ",
          format, " should lie between 1 and ", largest, ", they are ", width, "x", height);
}

void check_bytes(int width, int height, std::span<const std::uint8_t> bytes,
                 std::size_t channels = 3) {
  require(bytes.size() == std::size_t(width) * std::size_t(height) * channels, "a picture of ",
          width, "x", height, " pixels should have ", channels == 3 ? "three" : "four",
          " bytes each, it has ", bytes.size(), " in all");
}

struct JpegWriter {
  jpeg_compress_struct jpeg = {};
  jpeg_error_mgr errors = {};
  std::jmp_buf jump = {};
  unsigned char* bytes = nullptr;
  unsigned long size = 0;

  JpegWriter() {
    jpeg.err = jpeg_std_error(&errors);
    jpeg.client_data = this;
    errors.error_exit = [](j_common_ptr failed) {
      std::longjmp(static_cast<JpegWriter*>(failed->client_data)->jump, 1);
    };
  }
  JpegWriter(const JpegWriter&) = delete;
  JpegWriter& operator=(const JpegWriter&) = delete;
  ~JpegWriter() {
    jpeg_destroy_compress(&jpeg);
    std::free(bytes);
  }
};

// libjpeg's errors longjmp out of this function: create no object with a destructor in it.
bool write_jpeg(JpegWriter& writer, int width, int height, const std::uint8_t* rgb, int quality,
                std::string_view exif) {
  auto& jpeg = writer.jpeg;
  if (setjmp(writer.jump)) return false;
  jpeg_create_compress(&jpeg);
  jpeg.client_data = &writer;  // cleared by jpeg_create_compress
  jpeg_mem_dest(&jpeg, &writer.bytes, &writer.size);
  jpeg.image_width = JDIMENSION(width);
  jpeg.image_height = JDIMENSION(height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, quality, TRUE);
  if (quality >= kFullColour) jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = 1;
  jpeg.optimize_coding = TRUE;
  jpeg_start_compress(&jpeg, TRUE);
  if (!exif.empty())
    jpeg_write_marker(&jpeg, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(exif.data()),
                      unsigned(exif.size()));
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row =
        const_cast<JSAMPROW>(rgb + std::size_t(jpeg.next_scanline) * std::size_t(width) * 3);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  return true;
}

void append_chunk(std::string& webp, const char* name, std::string_view bytes) {
  webp += name;
  append_little_endian(webp, bytes.size(), 4);
  webp += bytes;
  if (bytes.size() % 2 != 0) webp += '\0';
}

// Turns a file into the extended format, in which one with alpha already is (WebP Container
// Specification).
std::string with_exif(std::string_view webp, int width, int height, std::string_view exif) {
  constexpr char kHasExif = 0x08;
  constexpr std::size_t kRiffHeader = 12, kExtentChunk = 18;
  const bool is_extended = webp.substr(kRiffHeader, 4) == "VP8X";
  std::string extent = {kHasExif, 0, 0, 0};
  if (is_extended) extent[0] = char(extent[0] | webp[kRiffHeader + 8]);
  append_little_endian(extent, std::size_t(width - 1), 3);
  append_little_endian(extent, std::size_t(height - 1), 3);
  std::string body = "WEBP";
  append_chunk(body, "VP8X", extent);
  body += webp.substr(is_extended ? kRiffHeader + kExtentChunk : kRiffHeader);
  append_chunk(body, "EXIF", exif);
  std::string file;
  append_chunk(file, "RIFF", body);
  return file;
}

}  // namespace

void check_jpeg_sides(int width, int height) {
  check_sides(width, height, JPEG_MAX_DIMENSION, "JPEG");
}

void check_webp_sides(int width, int height) {
  check_sides(width, height, WEBP_MAX_DIMENSION, "WebP");
}

std::string encode_jpeg(int width, int height, std::span<const std::uint8_t> rgb, int quality,
                        std::string_view exif) {
  check_jpeg_sides(width, height);
  check_bytes(width, height, rgb);
  JpegWriter writer;
  const bool has_exif = !exif.empty() && exif.size() <= kMostJpegExif;
  const auto marked = has_exif ? std::string("Exif\0\0", 6).append(exif) : std::string();
  check(write_jpeg(writer, width, height, rgb.data(), quality, marked), "a JPEG of ", width, "x",
        height, " pixels could not be made: out of memory");
  return {reinterpret_cast<const char*>(writer.bytes), writer.size};
}

namespace {

// `encode` is libwebp's for pixels of so many channels.
std::string webp_of(decltype(WebPEncodeRGB)& encode, int channels, int width, int height,
                    std::span<const std::uint8_t> pixels, int quality, std::string_view exif) {
  check_webp_sides(width, height);
  check_bytes(width, height, pixels, std::size_t(channels));
  std::uint8_t* bytes = nullptr;
  const auto size = encode(pixels.data(), width, height, width * channels, float(quality), &bytes);
  const std::unique_ptr<std::uint8_t, decltype(&WebPFree)> owned(bytes, WebPFree);
  check(size > 0, "a WebP of ", width, "x", height, " pixels could not be made: out of memory");
  const std::string_view webp(reinterpret_cast<const char*>(bytes), size);
  return exif.empty() ? std::string(webp) : with_exif(webp, width, height, exif);
}

}  // namespace

std::string encode_webp(int width, int height, std::span<const std::uint8_t> rgb, int quality,
                        std::string_view exif) {
  return webp_of(WebPEncodeRGB, 3, width, height, rgb, quality, exif);
}

std::string encode_webp_with_alpha(int width, int height, std::span<const std::uint8_t> rgba,
                                   int quality, std::string_view exif) {
  return webp_of(WebPEncodeRGBA, 4, width, height, rgba, quality, exif);
}

}  // namespace braid
