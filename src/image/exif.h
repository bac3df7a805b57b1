// EXIF data: which way up a picture is, and what is said of it. They are a TIFF structure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace braid {

// The orientation, 1 to 8; 1, upright, for data that say nothing or are damaged.
int exif_orientation(std::string_view tiff);

// The user's comment, which is what AUTOMATIC1111's web UI writes its settings into; nullopt where
// there is none that can be read.
std::optional<std::string> exif_comment(std::string_view tiff);

// Data of nothing but such a comment, as that web UI writes it. Throws InputError for text that is
// no UTF-8.
std::string exif_of_comment(std::string_view comment);

// Those of a whole file, without what files put before them; empty where there are none.
std::string_view exif_of_jpeg(std::string_view jpeg);
std::string_view exif_of_webp(std::string_view webp);

}  // namespace braid
