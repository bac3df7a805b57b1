#include "app/flags/flag_groups.h"
#include "app/flags/flag_values.h"

namespace braid {
namespace {

constexpr std::int64_t kMostPixels = std::int64_t(1) << 30;

}  // namespace

void add_input_picture_flags(FlagReader& read, PictureFlags& f) {
  read.path("--init", "FILE", "Pictures in",
            "Start from this PNG, JPEG or WebP picture, resized to --size,\n"
            "instead of from noise alone. --size is the picture's by default",
            f.init);
  read.text("--strength", "X", "Pictures in",
            "0 to 1: how much noise --init is given, and so how much of it\n"
            "is drawn anew: the part of the steps that is taken.\n"
            "Default: the model's, mostly 0.6",
            [&](const std::string& flag, const std::string& text) {
              f.strength = finite_number(flag, text);
            });
  read.path("--mask", "FILE", "Pictures in",
            "Of the size of --init: what is white here is drawn anew, what\n"
            "is black stays",
            f.mask);
  read.texts("--reference", "FILE", "Pictures in",
             "A picture that an editing model looks at; several times for\n"
             "several pictures",
             [&](const std::string& flag, const std::string& text) {
               require(!text.empty(), flag, " should be a path, it is empty");
               f.references.emplace_back(text);
             });
  read.path("--control", "FILE", "Pictures in", "Edges or depths that a control model follows",
            f.control);
  read.text("--max-pixels", "N", "Pictures in",
            "Refuse pictures of more pixels before they are unpacked.\n"
            "Default: 67108864",
            [&](const std::string& flag, const std::string& text) {
              f.max_pixels = std::uint64_t(whole_number(flag, text, 1, kMostPixels));
            });
}

}  // namespace braid
