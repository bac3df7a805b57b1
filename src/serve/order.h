// What a client asked for, ready for the engine.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "braid/braid.h"
#include "image/input_file.h"
#include "image/png.h"

namespace braid::serve {

struct Backend;

// How the pictures' files are written. PNGs alone have the bytes of `braid generate`; the others
// have its text as EXIF data.
struct FileForm {
  enum class Format { kPng, kJpeg, kWebp } format = Format::kPng;
  int quality = 100;  // 0 to 100; PNGs have none
};
const char* format_name(FileForm::Format format);   // "png"
std::string content_type_of(const FileForm& form);  // "image/png"
// Throws InputError for sizes that the format does not have.
std::string encoded(const FileForm& form, int width, int height, std::span<const std::uint8_t> rgb,
                    const PngText& text = {});

struct Order {
  const Backend* backend = nullptr;        // of the model; null: of the first one
  Request request = {};                    // complete
  std::vector<InputFile> files = {};       // of its pictures
  std::string client = {};                 // fairness is between these
  std::vector<std::string> warnings = {};  // that the engine had of it
  FileForm form = {};
  bool is_kept = false;  // for clients that come back; else it ends with its connection
  bool has_previews = false;
  double preview_interval = 0.5;  // seconds
};

}  // namespace braid::serve
