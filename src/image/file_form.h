// The format of a picture's file, and pictures encoded in it.
#pragma once

#include <span>
#include <string>

#include "image/png.h"

namespace braid {

// PNGs carry text on how a picture was made as chunks, the other formats as EXIF data: the lines
// that AUTOMATIC1111's web UI writes. PNGs have these lines, too.
struct FileForm {
  enum class Format { kPng, kJpeg, kWebp } format = Format::kPng;
  int quality = 100;       // 0 to 100; not for PNG
  bool is_opaque = false;  // what is transparent is laid on white
};

const char* format_name(FileForm::Format format);   // "png"
std::string content_type_of(const FileForm& form);  // "image/png"

// Throws InputError for sizes that the format does not support.
void check_sides(const FileForm& form, int width, int height);

// `alpha` is one byte per pixel, or empty; a JPEG has the picture on white, as has an opaque file.
// Throws as check_sides().
std::string encoded(const FileForm& form, int width, int height, std::span<const std::uint8_t> rgb,
                    const PngText& text = {}, std::span<const std::uint8_t> alpha = {});

// Whether the file cannot hold the whole text: encoded() then cuts its longest values.
bool is_text_cut(const FileForm& form, const PngText& text);
inline constexpr const char* kTextCut =
    "JPEG has room for 64 KiB of text on how a picture was made: longer prompts are cut in it (PNG "
    "and WebP keep them)";

inline bool keeps_alpha(const FileForm& form) {
  return form.format != FileForm::Format::kJpeg && !form.is_opaque;
}

// What to tell once of pictures whose transparency the format cannot hold, unless opaque ones were
// requested.
inline constexpr const char* kLaidOnWhite =
    "JPEG has no transparency: pictures are laid on white (PNG and WebP keep it)";
inline bool is_laid_on_white(const FileForm& form, std::span<const std::uint8_t> alpha) {
  return form.format == FileForm::Format::kJpeg && !form.is_opaque && !alpha.empty();
}

}  // namespace braid
