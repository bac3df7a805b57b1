#include "serve/body/brought_pictures.h"

#include <algorithm>

#include "base/error.h"
#include "base/sha256.h"
#include "image/picture_file.h"
#include "serve/api_error.h"
#include "serve/body/picture_options.h"

namespace braid::serve {
namespace {

constexpr double kSdapiStrength = 0.75;  // AUTOMATIC1111's default

// A picture that cannot be read is the client's to correct.
template <class Decode>
auto naming_field(const std::string& field, Decode decode) {
  try {
    return decode();
  } catch (const InputError& error) {
    throw ApiError(400, error.what(), "invalid_image", field);
  }
}

// Reads the pictures of one request within their bound.
class PictureReader {
 public:
  explicit PictureReader(const RequestBounds& bounds) : pixels_left_(bounds.max_input_pixels) {}

  Pixels read(const std::string& field, const char* role, const BroughtFile& file) {
    auto picture = naming_field(field, [&] {
      return decode_picture(file.bytes, "the " + field, std::uint64_t(pixels_left_));
    });
    note(role, file, picture);
    return picture;
  }
  // With holes, which OpenAI's masks have.
  Pixels read_holes(const std::string& field, const BroughtFile& file) {
    auto holes = naming_field(field, [&] {
      return decode_transparency(file.bytes, "the " + field, std::uint64_t(pixels_left_));
    });
    if (!holes) return read(field, "mask", file);
    note("mask", file, *holes);
    return std::move(*holes);
  }
  std::vector<InputFile> files() && { return std::move(files_); }

 private:
  void note(const char* role, const BroughtFile& file, const Pixels& picture) {
    pixels_left_ -= std::int64_t(picture.width) * picture.height;
    files_.push_back({.role = role,
                      .name = file.name.empty() ? role : file.name,
                      .sha256 = sha256_hex(file.bytes)});
  }

  std::int64_t pixels_left_;
  std::vector<InputFile> files_;
};

// At most one file where there may be one.
const BroughtFile* single(const std::vector<BroughtFile>& files, const std::string& field) {
  if (files.size() > 1)
    refuse(field, text_of("'", field, "' should be one picture, there are ", files.size()));
  return files.empty() ? nullptr : &files.front();
}

// As the families' roles are: what it starts from, what it looks at, or what it follows.
enum class Role { kInit, kReference, kControl };
Role role_of_first(const ModelInfo::Pictures& taken, bool is_started_from) {
  if (taken.most_references > 0 && !(is_started_from && taken.takes_init)) return Role::kReference;
  return taken.takes_control ? Role::kControl : Role::kInit;
}

void place(const std::vector<BroughtFile>& files, const std::string& field, Role first,
           PictureReader& reader, PicturesIn& pictures) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (i == 0 && first == Role::kInit)
      pictures.init = reader.read(field, "init", files[i]);
    else if (i == 0 && first == Role::kControl)
      pictures.controls.push_back({.picture = reader.read(field, "control", files[i])});
    else
      pictures.references.push_back(reader.read(field, "reference", files[i]));
  }
}

// What a file says of them is in the order of the program's flags.
BroughtPictures in_order(PicturesIn pictures, std::vector<InputFile> files) {
  const auto rank = [](const InputFile& file) {
    return file.role == "init" ? 0 : file.role == "mask" ? 1 : file.role == "reference" ? 2 : 3;
  };
  std::stable_sort(files.begin(), files.end(),
                   [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return {std::move(pictures), std::move(files)};
}

}  // namespace

BroughtPictures read_own_pictures(Fields& fields, const RequestBounds& bounds) {
  PictureReader reader(bounds);
  PicturesIn in;
  const auto one = [&](const char* field, std::optional<Pixels>& picture) {
    const auto files = fields.files(field);
    if (const auto* const file = single(files, field)) picture = reader.read(field, field, *file);
  };
  one("init", in.init);
  one("mask", in.mask);
  for (const auto& file : fields.files("reference"))
    in.references.push_back(reader.read("reference", "reference", file));
  for (const auto& file : fields.files("control"))
    in.controls.push_back({.picture = reader.read("control", "control", file)});
  in.strength = fields.number({"strength"});
  read_picture_options(fields, in);
  return in_order(std::move(in), std::move(reader).files());
}

BroughtPictures read_edited_pictures(Fields& fields, const ModelInfo& info,
                                     const RequestBounds& bounds) {
  const auto images = fields.files("image");
  if (images.empty())
    throw ApiError(400, "there is no 'image'", "missing_required_parameter", "image");
  const auto masks = fields.files("mask");
  const auto* const mask = single(masks, "mask");
  PictureReader reader(bounds);
  PicturesIn in;
  in.strength = fields.number({"strength"});
  place(images, "image", role_of_first(info.pictures, mask || in.strength), reader, in);
  if (mask) in.mask = reader.read_holes("mask", *mask);
  read_picture_options(fields, in);
  return in_order(std::move(in), std::move(reader).files());
}

BroughtPictures read_sdapi_pictures(Fields& fields, const ModelInfo& info,
                                    const RequestBounds& bounds) {
  const auto images = fields.files("init_images");
  if (images.empty())
    throw ApiError(400, "there are no 'init_images'", "missing_required_parameter", "init_images");
  const auto masks = fields.files("mask");
  const auto* const mask = single(masks, "mask");
  PictureReader reader(bounds);
  PicturesIn in;
  const auto strength = fields.number({"denoising_strength"}).value_or(kSdapiStrength);
  const auto role = role_of_first(info.pictures, true);
  place(images, "init_images", role, reader, in);
  if (role == Role::kInit) in.strength = strength;
  if (mask) in.mask = reader.read("mask", "mask", *mask);
  return in_order(std::move(in), std::move(reader).files());
}

}  // namespace braid::serve
