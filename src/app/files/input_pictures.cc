#include "app/files/input_pictures.h"

#include "base/file.h"
#include "base/sha256.h"
#include "image/picture_file.h"

namespace braid {

InputPictures read_input_pictures(const PictureFlags& flags) {
  InputPictures in;
  const auto read = [&](const char* role, const std::filesystem::path& path) {
    const auto bytes = read_file(path);
    in.files.push_back(
        {.role = role, .name = path.filename().string(), .sha256 = sha256_hex(bytes)});
    return decode_picture(bytes, path.string(), flags.max_pixels);
  };
  if (!flags.init.empty()) in.pictures.init = read("init", flags.init);
  if (!flags.mask.empty()) in.pictures.mask = read("mask", flags.mask);
  for (const auto& path : flags.references)
    in.pictures.references.push_back(read("reference", path));
  if (!flags.control.empty()) in.pictures.control = read("control", flags.control);
  in.pictures.strength = flags.strength;
  return in;
}

}  // namespace braid
