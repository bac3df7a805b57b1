#include "image/lossy_encode.h"

#include <cstdio>  // before jpeglib.h, which wants it

#include <jpeglib.h>
#include <webp/encode.h>

#include <csetjmp>
#include <cstdlib>
#include <memory>

#include "base/error.h"

namespace braid {
namespace {

constexpr int kFullColour = 90;  // the quality

void check_size(int width, int height, std::span<const std::uint8_t> rgb, int largest,
                const char* format) {
  require(width >= 1 && height >= 1 && width <= largest && height <= largest, "the sides of a ",
          format, " should lie between 1 and ", largest, ", they are ", width, "x", height);
  require(rgb.size() == std::size_t(width) * std::size_t(height) * 3, "a picture of ", width, "x",
          height, " pixels should have three bytes each, it has ", rgb.size(), " in all");
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

// libjpeg's errors jump out of this function: no object with a destructor may be made in it.
bool write_jpeg(JpegWriter& writer, int width, int height, const std::uint8_t* rgb, int quality) {
  auto& jpeg = writer.jpeg;
  if (setjmp(writer.jump)) return false;
  jpeg_create_compress(&jpeg);
  jpeg.client_data = &writer;  // which that has cleared
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
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row =
        const_cast<JSAMPROW>(rgb + std::size_t(jpeg.next_scanline) * std::size_t(width) * 3);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  return true;
}

}  // namespace

std::string encode_jpeg(int width, int height, std::span<const std::uint8_t> rgb, int quality) {
  check_size(width, height, rgb, JPEG_MAX_DIMENSION, "JPEG");
  JpegWriter writer;
  check(write_jpeg(writer, width, height, rgb.data(), quality), "a JPEG of ", width, "x", height,
        " pixels could not be made: out of memory");
  return {reinterpret_cast<const char*>(writer.bytes), writer.size};
}

std::string encode_webp(int width, int height, std::span<const std::uint8_t> rgb, int quality) {
  check_size(width, height, rgb, WEBP_MAX_DIMENSION, "WebP");
  std::uint8_t* bytes = nullptr;
  const auto size = WebPEncodeRGB(rgb.data(), width, height, width * 3, float(quality), &bytes);
  const std::unique_ptr<std::uint8_t, decltype(&WebPFree)> owned(bytes, WebPFree);
  check(size > 0, "a WebP of ", width, "x", height, " pixels could not be made: out of memory");
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace braid
