#include "serve/body/brought_pictures.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/sha256.h"
#include "image/picture_file.h"
#include "serve/api_error.h"
#include "serve/body/picture_options.h"

namespace braid::serve {
namespace {

constexpr double kSdapiStrength = 0.75;  // AUTOMATIC1111's default

// Reports a picture that cannot be read as the client's error.
template <class Decode>
auto naming_field(const std::string& field, Decode decode) {
  try {
    return decode();
  } catch (const InputError& error) {
    throw ApiError(400, error.what(), "invalid_image", field);
  }
}

using Role = UndecodedPictures::Role;

const char* role_name(Role role) {
  switch (role) {
    case Role::kInit:
      return "init";
    case Role::kMask:
    case Role::kHoles:
    case Role::kPainted:
      return "mask";
    case Role::kReference:
      return "reference";
    case Role::kControl:
      return "control";
  }
  return "";
}

bool is_mask(Role role) {
  return role == Role::kMask || role == Role::kHoles || role == Role::kPainted;
}

// White where alpha is above the middle, else black: the web UI's create_binary_mask().
Pixels painted_in_alpha(Pixels seen_through) {
  constexpr int kMiddle = 128;
  for (auto& value : seen_through.rgb) value = 255 - value > kMiddle ? 255 : 0;
  return seen_through;
}

struct Source {
  const std::string& bytes;
  std::string name;
  std::uint64_t max_pixels;
};

// nullopt where colours count.
std::optional<Pixels> mask_in_alpha(Role role, const Source& source) {
  const auto& [bytes, name, max_pixels] = source;
  if (role == Role::kHoles) return decode_transparency(bytes, name, max_pixels);
  if (role != Role::kPainted || !may_store_rgba(bytes, name)) return {};
  auto seen_through = decode_transparency(bytes, name, max_pixels);
  if (!seen_through) return {};
  return painted_in_alpha(*std::move(seen_through));
}

Pixels decoded_in(Role role, const Source& source) {
  const auto& [bytes, name, max_pixels] = source;
  if (auto mask = mask_in_alpha(role, source)) return *std::move(mask);
  if (is_mask(role) || role == Role::kControl) return decode_meaning(bytes, name, max_pixels);
  // a model may look at a reference's transparency
  Flatten& on_white = over_white;
  Flatten& flatten = role == Role::kReference ? with_alpha : on_white;
  return decode_picture(bytes, name, max_pixels, flatten);
}

// Refuses several files where there may be one.
std::optional<BroughtFile> single(std::vector<BroughtFile> files, const std::string& field) {
  if (files.size() > 1)
    refuse(field, text_of("'", field, "' should be one picture, there are ", files.size()));
  return files.empty() ? std::nullopt : std::optional(std::move(files.front()));
}

// The web UI takes an empty text or list for no picture, and its clients send it.
std::vector<BroughtFile> files_if_any(Fields& fields, const char* name) {
  if (!fields.has(name)) return {};
  const auto& value = fields.json().at(name);
  if (value == Json("") || value == Json::array()) return {};
  return fields.files(name);
}

// The family decides: its pictures are what to start from, what to look at, or what to follow.
Role role_of_first(const ModelInfo::Pictures& taken, bool is_started_from) {
  if (taken.most_references > 0 && !(is_started_from && taken.takes_init)) return Role::kReference;
  return taken.takes_control ? Role::kControl : Role::kInit;
}

void refuse_mask_without_init(bool has_mask, Role first) {
  if (has_mask && first != Role::kInit)
    refuse("mask", "this model takes no masks: it does not start from its pictures");
}

// The first picture may be one to start from, or to follow: the others are references.
void require_few(std::size_t files, const std::string& field, Role first, const ModelInfo& info) {
  const std::size_t others = first == Role::kReference ? 0 : 1;
  const auto most = others + std::size_t(info.pictures.most_references);
  if (files > most)
    refuse(field, text_of("this model takes ", most, most == 1 ? " picture" : " pictures", " as '",
                          field, "', there ", files == 1 ? "is " : "are ", files));
}

// stable-diffusion.cpp's and KoboldCpp's field for pictures to look at, beside those that are
// there.
void add_extra_images(Fields& fields, const ModelInfo& info, UndecodedPictures& pictures) {
  const char* const field = "extra_images";
  auto files = files_if_any(fields, field);
  const auto most = std::size_t(info.pictures.most_references),
             left = most - std::min(most, pictures.settings().references.size());
  if (files.size() > left)
    refuse(field, text_of("this model takes ", left, left < most ? " more" : "",
                          left == 1 ? " picture" : " pictures", " as '", field, "', there ",
                          files.size() == 1 ? "is " : "are ", files.size()));
  for (auto& file : files) pictures.add(Role::kReference, field, std::move(file));
}

void add_all(std::vector<BroughtFile> files, const std::string& field, Role first,
             UndecodedPictures& pictures) {
  for (std::size_t i = 0; i < files.size(); ++i)
    pictures.add(i == 0 ? first : Role::kReference, field, std::move(files[i]));
}

// How far to depart from the picture to start from.
void check_strength(const char* field, std::optional<double> strength) {
  if (strength && (*strength < 0 || *strength > 1))
    refuse(field, text_of("'", field, "' should lie between 0 and 1, it is ", *strength));
}

}  // namespace

void UndecodedPictures::add(Role role, const std::string& field, BroughtFile file) {
  naming_field(field, [&] {
    const auto [width, height] = stored_size(file.bytes, "the " + field);
    if (width > pixels_left_ / std::max<std::uint64_t>(height, 1))
      throw ApiError(413,
                     text_of("the ", field, " has ", width, "x", height, " pixels, at most ",
                             pixels_left_, " are read: ", most_pixels_,
                             " for all pictures of a request (--max-input-pixels)"),
                     "too_many_pixels", field);
    pixels_left_ -= width * height;
    num_bytes_ += width * height * 3;
  });
  if (role == Role::kInit) in_.init.emplace();
  if (is_mask(role)) in_.mask.emplace();
  if (role == Role::kReference) in_.references.emplace_back();
  if (role == Role::kControl) in_.controls.emplace_back();
  undecoded_.push_back({role, field, std::move(file)});
}

BroughtPictures UndecodedPictures::decoded() && {
  // The result's file lists them in the order of the program's flags.
  std::ranges::stable_sort(undecoded_, {}, &Undecoded::role);
  BroughtPictures brought{.pictures = std::move(in_), .files = {}};
  auto& in = brought.pictures;
  auto reference = in.references.begin();
  auto control = in.controls.begin();
  for (auto& one : undecoded_) {
    auto& place = one.role == Role::kInit        ? *in.init
                  : one.role == Role::kReference ? *reference++
                  : one.role == Role::kControl   ? control++->picture
                                                 : *in.mask;
    place = naming_field(one.field, [&] {
      return decoded_in(one.role, {one.file.bytes, "the " + one.field, most_pixels_});
    });
    const auto* const name = role_name(one.role);
    brought.files.push_back({.role = name,
                             .name = one.file.name.empty() ? name : one.file.name,
                             .sha256 = sha256_hex(one.file.bytes)});
    one.file.bytes = {};
  }
  return brought;
}

UndecodedPictures read_own_pictures(Fields& fields, const ModelInfo& info,
                                    const RequestBounds& bounds) {
  UndecodedPictures pictures(bounds);
  const auto add = [&](const char* field, Role role) {
    auto files = fields.files(field);
    if (role == Role::kReference) require_few(files.size(), field, role, info);
    for (auto& file : files) pictures.add(role, field, std::move(file));
  };
  const auto add_one = [&](const char* field, Role role) {
    if (auto file = single(fields.files(field), field)) pictures.add(role, field, std::move(*file));
  };
  add_one("init", Role::kInit);
  add_one("mask", Role::kMask);
  add("reference", Role::kReference);
  add("control", Role::kControl);
  const auto strength = fields.number({"strength"});
  check_strength("strength", strength);
  if (strength && !pictures.settings().init)
    refuse("strength", "a 'strength' should come with an 'init' to start from, there is none");
  pictures.settings().strength = strength;
  read_picture_options(fields, info, pictures.settings());
  return pictures;
}

UndecodedPictures read_edited_pictures(Fields& fields, const ModelInfo& info,
                                       const RequestBounds& bounds) {
  std::vector<BroughtFile> images;
  std::string field = "image";  // the one that is complained of
  for (const auto* const name : {"image", "images", "image_url"}) {
    auto more = fields.files(name);
    if (images.empty() && !more.empty()) field = name;
    std::ranges::move(more, std::back_inserter(images));
  }
  if (images.empty())
    throw ApiError(400, "there is no 'image'", "missing_required_parameter", "image");
  auto mask = single(fields.files("mask"), "mask");
  const auto strength = fields.number({"strength"});
  check_strength("strength", strength);
  const auto first = role_of_first(info.pictures, mask || strength);
  refuse_mask_without_init(mask.has_value(), first);
  require_few(images.size(), field, first, info);
  UndecodedPictures pictures(bounds);
  add_all(std::move(images), field, first, pictures);
  if (mask) pictures.add(Role::kHoles, "mask", std::move(*mask));
  pictures.settings().strength = strength;
  read_picture_options(fields, info, pictures.settings());
  return pictures;
}

UndecodedPictures read_sdapi_pictures(Fields& fields, const ModelInfo& info,
                                      const RequestBounds& bounds) {
  auto images = fields.files("init_images");
  if (images.empty())
    throw ApiError(400, "there are no 'init_images'", "missing_required_parameter", "init_images");
  auto mask = single(files_if_any(fields, "mask"), "mask");
  const auto strength = fields.number({"denoising_strength"}).value_or(kSdapiStrength);
  const auto role = role_of_first(info.pictures, mask || !info.pictures.init_needs_mask);
  refuse_mask_without_init(mask.has_value(), role);
  require_few(images.size(), "init_images", role, info);
  UndecodedPictures pictures(bounds);
  add_all(std::move(images), "init_images", role, pictures);
  if (role == Role::kInit) check_strength("denoising_strength", strength);
  if (role == Role::kInit)
    pictures.settings().strength = strength;
  else if (strength != kSdapiStrength)
    fields.warn("'denoising_strength' is not used: this model does not start from its pictures");
  if (mask) pictures.add(Role::kPainted, "mask", std::move(*mask));
  add_extra_images(fields, info, pictures);
  return pictures;
}

UndecodedPictures read_sdapi_references(Fields& fields, const ModelInfo& info,
                                        const RequestBounds& bounds) {
  UndecodedPictures pictures(bounds);
  add_extra_images(fields, info, pictures);
  return pictures;
}

}  // namespace braid::serve
