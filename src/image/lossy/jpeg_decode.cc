#include "image/lossy/jpeg_decode.h"

#include <cstdio>  // before jpeglib.h, which needs it

#include <jpeglib.h>

#include <jerror.h>  // behind jpeglib.h, whose version it numbers messages for

#include <csetjmp>

#include "base/error.h"
#include "image/exif.h"
#include "image/orientation.h"
#include "image/over_white.h"

namespace braid {
namespace {

constexpr int kMaxScans = 500;  // a small file can ask for endless passes over a picture

struct JpegErrors {
  jpeg_error_mgr manager = {};
  std::jmp_buf jump = {};
  char message[JMSG_LENGTH_MAX] = {};
};

[[noreturn]] void fail_to_decode(j_common_ptr jpeg) {
  auto& errors = *reinterpret_cast<JpegErrors*>(jpeg->err);
  errors.manager.format_message(jpeg, errors.message);
  std::longjmp(errors.jump, 1);
}

// Whether the scan that just began repeats one, and so brings no other pixels: coefficients that
// are as precise already. Bits that refine AC coefficients are read differently a second time.
bool is_repeated_scan(const jpeg_decompress_struct& jpeg) {
  const auto* const named = jpeg.err->msg_parm.i;  // component and coefficient
  const bool is_precise = jpeg.coef_bits && jpeg.coef_bits[named[0]][named[1]] == jpeg.Al;
  return is_precise && (jpeg.Ah == 0 || jpeg.Ss == 0);
}

// Unusual headers and bytes between segments lose no pixels. All other warnings are of scans whose
// data end early or cannot be read.
bool keeps_all_pixels(j_common_ptr jpeg) {
  switch (jpeg->err->msg_code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_JFIF_MAJOR:
    case JWRN_NOT_SEQUENTIAL:
      return true;
    case JWRN_BOGUS_PROGRESSION:
      return is_repeated_scan(*reinterpret_cast<j_decompress_ptr>(jpeg));
    default:
      return false;
  }
}

void take_warning(j_common_ptr jpeg, int level) {
  if (level < 0 && !keeps_all_pixels(jpeg)) fail_to_decode(jpeg);
}

void count_scans(j_common_ptr jpeg) {
  auto& decoder = *reinterpret_cast<j_decompress_ptr>(jpeg);
  if (decoder.input_scan_number <= kMaxScans) return;
  auto& errors = *reinterpret_cast<JpegErrors*>(jpeg->err);
  std::snprintf(errors.message, sizeof errors.message, "it has more than %d scans", kMaxScans);
  std::longjmp(errors.jump, 1);
}

class JpegReader {
 public:
  JpegReader() {
    jpeg.err = jpeg_std_error(&errors.manager);
    errors.manager.error_exit = fail_to_decode;
    errors.manager.emit_message = take_warning;
    progress.progress_monitor = count_scans;
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  ~JpegReader() { jpeg_destroy_decompress(&jpeg); }

  // libjpeg's errors longjmp out of these two: create no object with a destructor in them.
  bool read_header(std::string_view bytes) {
    if (setjmp(errors.jump)) return false;
    jpeg_create_decompress(&jpeg);
    jpeg.progress = &progress;
    jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&jpeg, TRUE);
    const bool is_cmyk = jpeg.num_components == 4;
    jpeg.out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
    return true;
  }
  bool read_rows(std::uint8_t* rows, std::size_t row_bytes) {
    if (setjmp(errors.jump)) return false;
    jpeg_start_decompress(&jpeg);
    while (jpeg.output_scanline < jpeg.output_height) {
      JSAMPROW row = rows + jpeg.output_scanline * row_bytes;
      jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
    return true;
  }

  jpeg_decompress_struct jpeg = {};
  jpeg_progress_mgr progress = {};
  JpegErrors errors;
};

// CMYK to RGB. Adobe's programs store the values inverted; like Pillow, all are taken for theirs,
// with or without their marker.
std::vector<std::uint8_t> rgb_of_cmyk(const std::vector<std::uint8_t>& cmyk) {
  std::vector<std::uint8_t> rgb(cmyk.size() / 4 * 3);
  for (std::size_t i = 0; i < cmyk.size() / 4; ++i) {
    const auto light = [&](std::size_t c) -> int { return cmyk[4 * i + c]; };
    for (std::size_t c = 0; c < 3; ++c) {
      const int black = (255 - light(c)) * light(3) + 128;
      rgb[3 * i + c] = std::uint8_t(std::max(0, light(3) - ((black + (black >> 8)) >> 8)));
    }
  }
  return rgb;
}

}  // namespace

StoredSize jpeg_size(std::string_view bytes, const std::string& source) {
  JpegReader reader;
  require(reader.read_header(bytes), source, " is a damaged JPEG: ", reader.errors.message);
  return {reader.jpeg.image_width, reader.jpeg.image_height};
}

Pixels decode_jpeg(std::string_view bytes, const std::string& source, std::uint64_t max_pixels) {
  JpegReader reader;
  const auto require_read = [&](bool was_read) {
    require(was_read, source, " is a damaged JPEG: ", reader.errors.message);
  };
  require_read(reader.read_header(bytes));
  const auto& jpeg = reader.jpeg;
  require_few_pixels(jpeg.image_width, jpeg.image_height, max_pixels, source);
  const bool is_cmyk = jpeg.out_color_space == JCS_CMYK;
  const auto row_bytes = std::size_t(jpeg.image_width) * (is_cmyk ? 4 : 3);
  Pixels picture{int(jpeg.image_width), int(jpeg.image_height),
                 std::vector<std::uint8_t>(row_bytes * jpeg.image_height)};
  require_read(reader.read_rows(picture.rgb.data(), row_bytes));
  if (is_cmyk) picture.rgb = rgb_of_cmyk(picture.rgb);
  return upright(std::move(picture), orientation_of(exif_of_jpeg(bytes), xmp_of_jpeg(bytes)));
}

}  // namespace braid
