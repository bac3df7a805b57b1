#include "serve/order.h"

#include "image/lossy_encode.h"
#include "image/png.h"

namespace braid::serve {

using Format = FileForm::Format;

const char* format_name(Format format) {
  return format == Format::kJpeg ? "jpeg" : format == Format::kWebp ? "webp" : "png";
}

std::string content_type_of(const FileForm& form) {
  return std::string("image/") + format_name(form.format);
}

std::string encoded(const FileForm& form, int width, int height,
                    std::span<const std::uint8_t> rgb) {
  if (form.format == Format::kJpeg) return encode_jpeg(width, height, rgb, form.quality);
  if (form.format == Format::kWebp) return encode_webp(width, height, rgb, form.quality);
  return encode_png(width, height, rgb);
}

}  // namespace braid::serve
