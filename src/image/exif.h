// EXIF data, a TIFF structure: the orientation of a picture and the user's comment. XMP data, which
// are XML, may hold the orientation, too.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace braid {

// The data may begin with the name that files write before them, also twice.

// The orientation, 1 to 8; 1, upright, if the data are silent or damaged.
int exif_orientation(std::string_view exif);
// That of the EXIF data if they have one, else that of the XMP data: Pillow's exif_transpose().
int orientation_of(std::string_view exif, std::string_view xmp);

// The user's comment, where AUTOMATIC1111's web UI stores its settings; nullopt if there is no
// readable one. NUL characters at its end are padding.
std::optional<std::string> exif_comment(std::string_view exif);

// EXIF data with only such a comment, as that web UI writes it; where this exceeds `most` bytes,
// with ASCII text in half as many. Throws InputError for text that is not UTF-8.
std::string exif_of_comment(std::string_view comment, std::size_t most = std::string::npos);

// The EXIF and XMP data in a whole file, without the file's own prefix; empty if there are none.
std::string_view exif_of_jpeg(std::string_view jpeg);
std::string_view exif_of_webp(std::string_view webp);
std::string_view xmp_of_jpeg(std::string_view jpeg);
std::string_view xmp_of_webp(std::string_view webp);

}  // namespace braid
