#include "app/flags/flag_groups.h"
#include "app/flags/flag_values.h"
#include "pipeline/families/description.h"

namespace braid {
namespace {

constexpr std::int64_t kMostPixels = std::int64_t(1) << 30;

constexpr std::int64_t kMostModes = 10'000;

// Behind the last '=' a number is the scale; anything else is a part of the file's name.
std::pair<std::string, double> reference_of(const std::string& text) {
  const auto sign = text.rfind('=');
  if (sign == std::string::npos) return {text, 1};
  try {
    return {text.substr(0, sign), finite_number("--reference", text.substr(sign + 1))};
  } catch (const InputError&) {
    return {text, 1};
  }
}

void add_control_flags(FlagReader& read, PictureFlags& f) {
  read.texts("--control", "FILE", "Pictures in",
             "Edges or depths that a control model or a ControlNet follows;\n"
             "once for each --controlnet",
             [&](const std::string& flag, const std::string& text) {
               require(!text.empty(), flag, " should be a path, it is empty");
               f.controls.emplace_back(text);
             });
  const auto numbers = [&](const char* name, const char* help, std::vector<double>& to) {
    read.texts(name, "X", "Pictures in", help, [&to](const std::string& flag, const auto& text) {
      to.push_back(finite_number(flag, text));
    });
  };
  numbers("--control-scale",
          "How strongly a ControlNet is followed; once for all, or for each\n"
          "--control in their order. Default: 1",
          f.control_scales);
  numbers("--control-from",
          "0 to 1: the part of the steps before a ControlNet is followed.\n"
          "Default: 0",
          f.control_from);
  numbers("--control-to", "0 to 1: the part of the steps until when it is. Default: 1",
          f.control_to);
  read.texts("--control-mode", "N", "Pictures in",
             "The kind of picture, for ControlNets that follow several",
             [&](const std::string& flag, const std::string& text) {
               f.control_modes.push_back(int(whole_number(flag, text, 0, kMostModes)));
             });
}

void add_reference_cache_flag(FlagReader& read, PictureFlags& f, const std::string& group) {
  read.text("--reference-cache", "WHEN", group,
            "auto: models that were trained for it look at references once,\n"
            "before the first step; off: all do in every step. Default: auto",
            [&](const std::string& flag, const std::string& text) {
              f.reference_cache = choice<ReferenceCache>(
                  flag, text, {{"auto", ReferenceCache::kAuto}, {"off", ReferenceCache::kOff}});
            });
}

void check_count(const char* flag, std::size_t count, std::size_t controls) {
  require(count <= 1 || count == controls, flag, " is given ", count, " times, --control ",
          controls, controls == 1 ? " time" : " times");
  require(count == 0 || controls > 0, flag, " needs --control");
}

}  // namespace

void check_pictures_in(const PictureFlags& f, const PipelineOptions& options) {
  require(options.redux.empty() || !f.references.empty(),
          "--redux needs --reference, the picture that it looks at");
  require(options.controlnets.empty() || !f.controls.empty(),
          "--controlnet needs --control, the picture that it follows");
  check_count("--control-scale", f.control_scales.size(), f.controls.size());
  check_count("--control-from", f.control_from.size(), f.controls.size());
  check_count("--control-to", f.control_to.size(), f.controls.size());
  check_count("--control-mode", f.control_modes.size(), f.controls.size());
}

void add_looked_at_flags(FlagReader& read, PictureFlags& f, const std::string& group) {
  read.path("--init", "FILE", group, "Of the size of this picture, which some models look at, too",
            f.init);
  read.path("--mask", "FILE", group, "Of the size of --init: what of it is drawn anew", f.mask);
  read.texts("--reference", "FILE", group,
             "Also of a picture of this size that the model looks at; several\n"
             "times for several",
             [&](const std::string& flag, const std::string& text) {
               require(!text.empty(), flag, " should be a path, it is empty");
               f.references.emplace_back(text);
             });
  add_reference_cache_flag(read, f, group);
}

void add_input_picture_flags(FlagReader& read, PictureFlags& f) {
  read.path("--init", "FILE", "Pictures in",
            "Start from this PNG, JPEG or WebP picture, resized to --size,\n"
            "instead of from noise alone. --size is the picture's by default",
            f.init);
  read.text("--strength", "X", "Pictures in",
            "0 to 1: how much noise --init is given, and so how much of it\n"
            "is drawn anew: the part of the steps that is taken.\n"
            "Default: the model's, mostly 0.6",
            into(f.strength, finite_number));
  read.text("--mask", "FILE", "Pictures in",
            "Of the size of --init: what is white here is drawn anew, what\n"
            "is black stays. alpha: what is transparent in --init is drawn",
            [&](const std::string& flag, const std::string& text) {
              require(!text.empty(), flag, " should be a path, it is empty");
              f.mask_is_alpha = text == "alpha";
              if (!f.mask_is_alpha) f.mask = text;
            });
  read.text("--mask-blur", "R", "Pictures in",
            "Soften the mask's edges: a Gaussian of so many of its pixels.\n"
            "Default: 0",
            into(f.mask_blur, finite_number));
  read.text("--padding-crop", "PIXELS", "Pictures in",
            "Draw, in the size of --size, only what lies around the white of\n"
            "the mask and so many pixels more, and put it back into --init",
            into(f.padding_crop, whole_from(0, kMaxSide)));
  read.texts("--reference", "FILE[=SCALE]", "Pictures in",
             "A picture that an editing model, or --redux, looks at; several\n"
             "times for several. --redux gives it this weight, 1 by default",
             [&](const std::string& flag, const std::string& text) {
               const auto [file, scale] = reference_of(text);
               require(!file.empty(), flag, " should be a path, it is empty");
               f.references.emplace_back(file);
               f.reference_scales.push_back(scale);
             });
  add_reference_cache_flag(read, f, "Pictures in");
  add_control_flags(read, f);
  read.text("--max-pixels", "N", "Pictures in",
            "Refuse pictures of more pixels before they are unpacked.\n"
            "Default: 67108864",
            [&](const std::string& flag, const std::string& text) {
              f.max_pixels = std::uint64_t(whole_number(flag, text, 1, kMostPixels));
            });
}

}  // namespace braid
