#include "app/files/input_pictures.h"

#include <algorithm>

#include "app/files/input_bytes.h"
#include "base/error.h"
#include "base/sha256.h"
#include "image/picture_file.h"

namespace braid {
namespace {

// A flag's value for control picture `i`: its own, or the single one given for all.
template <class Value, class Otherwise>
Otherwise of_control(const std::vector<Value>& values, std::size_t i, Otherwise otherwise) {
  if (values.empty()) return otherwise;
  return values.size() == 1 ? values.front() : values[i];
}

// What sentences call it.
std::string source_of(const std::filesystem::path& path) {
  return path == "-" ? "standard input" : path.string();
}

}  // namespace

InputPictures read_input_pictures(const PictureFlags& flags) {
  InputPictures in;
  const auto decode = [&](const char* role, const std::filesystem::path& path,
                          const std::string& bytes, Flatten& flatten) {
    in.files.push_back(
        {.role = role, .name = path.filename().string(), .sha256 = sha256_hex(bytes)});
    return decode_picture(bytes, source_of(path), flags.max_pixels, flatten);
  };
  const auto read = [&](const char* role, const std::filesystem::path& path, Flatten& flatten) {
    return decode(role, path, read_input(std::string("--") + role, path), flatten);
  };
  // Their black and white mean something: transparency is ignored, as Pillow's convert() does.
  const auto read_meaning = [&](const char* role, const std::filesystem::path& path) {
    return read(role, path, without_transparency);
  };
  std::string init;  // read once: it may be a pipe
  if (!flags.init.empty()) {
    init = read_input("--init", flags.init);
    in.pictures.init = decode("init", flags.init, init, over_white);
  }
  if (!flags.mask.empty()) in.pictures.mask = read_meaning("mask", flags.mask);
  if (flags.mask_is_alpha) {
    require(!flags.init.empty(), "--mask alpha needs --init");
    in.pictures.mask = decode_transparency(init, source_of(flags.init), flags.max_pixels);
    require(in.pictures.mask.has_value(), source_of(flags.init),
            " should have transparent pixels, it has none");
    in.files.push_back({.role = "mask", .name = "alpha", .sha256 = in.files.front().sha256});
  }
  in.pictures.mask_blur = flags.mask_blur;
  in.pictures.padding_crop = flags.padding_crop;
  for (const auto& path : flags.references)
    in.pictures.references.push_back(read("reference", path, with_alpha));
  const auto& scales = flags.reference_scales;
  if (std::any_of(scales.begin(), scales.end(), [](double scale) { return scale != 1; }))
    in.pictures.reference_scales = scales;
  const auto follow = [&](std::size_t i, Pixels picture) {
    in.pictures.controls.push_back(
        {.picture = std::move(picture),
         .scale = of_control(flags.control_scales, i, 1.0),
         .from = of_control(flags.control_from, i, 0.0),
         .to = of_control(flags.control_to, i, 1.0),
         .mode = of_control(flags.control_modes, i, std::optional<int>())});
  };
  for (std::size_t i = 0; i < flags.controls.size(); ++i)
    follow(i, read_meaning("control", flags.controls[i]));
  const bool says_how = !flags.control_scales.empty() || !flags.control_from.empty() ||
                        !flags.control_to.empty() || !flags.control_modes.empty();
  if (flags.controls.empty() && says_how) follow(0, {});  // a ControlNet fills the picture in
  in.pictures.strength = flags.strength;
  in.pictures.reference_cache = flags.reference_cache;
  in.pictures.resolution = flags.resolution;
  return in;
}

}  // namespace braid
