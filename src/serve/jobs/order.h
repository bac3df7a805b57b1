// A client's request, ready for the engine.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "braid/braid.h"
#include "image/input_file.h"
#include "image/png.h"

namespace braid::serve {

struct Backend;

// The format of the pictures' files. PNGs have exactly the bytes that `braid generate` writes; the
// other formats carry its text as EXIF data.
struct FileForm {
  enum class Format { kPng, kJpeg, kWebp } format = Format::kPng;
  int quality = 100;  // 0 to 100; not for PNG
};
const char* format_name(FileForm::Format format);   // "png"
std::string content_type_of(const FileForm& form);  // "image/png"
// Throws InputError for sizes that the format does not support.
std::string encoded(const FileForm& form, int width, int height, std::span<const std::uint8_t> rgb,
                    const PngText& text = {});

struct Order {
  const Backend* backend = nullptr;        // the model's; null: the first one
  Request request = {};                    // complete
  std::vector<InputFile> files = {};       // its pictures' files
  std::string client = {};                 // turns are shared fairly between clients
  std::vector<std::string> warnings = {};  // for the client
  FileForm form = {};
  bool is_kept = false;  // for clients that come back; otherwise it ends with its connection
  bool has_previews = false;
  double preview_interval = 0.5;  // seconds
};

}  // namespace braid::serve
