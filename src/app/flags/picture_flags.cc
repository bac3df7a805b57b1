#include "app/flags/flag_groups.h"
#include "app/flags/flag_values.h"
#include "pipeline/families/description.h"

namespace braid {
namespace {

constexpr std::int64_t kMostPixels = std::int64_t(1) << 30;

constexpr std::int64_t kMostModes = 10'000;

// Only a number is a scale; other names may have a '=' as well.
std::pair<std::string, double> reference_of(const std::string& text) {
  const auto [file, number] = numbered_file(text);
  const auto scale = number ? number_in(*number) : std::nullopt;
  return scale && !file.empty() ? std::pair(file, *scale) : std::pair(text, 1.0);
}

void add_control_flags(FlagReader& read, PictureFlags& f) {
  read.texts("--control", "FILE", "Input pictures",
             "Edges or depths that a control model or a ControlNet follows;\n"
             "give one for each --controlnet, unless that fills --init in",
             [&](const std::string& flag, const std::string& text) {
               require(!text.empty(), flag, " should be a path, it is empty");
               f.controls.emplace_back(text);
             });
  const auto numbers = [&](const char* name, const char* help, std::vector<double>& to) {
    read.texts(name, "X", "Input pictures", help, [&to](const std::string& flag, const auto& text) {
      to.push_back(finite_number(flag, text));
    });
  };
  numbers("--control-scale",
          "How strongly a ControlNet is followed; given once for all, or\n"
          "once for each --control, in the same order. Default: 1",
          f.control_scales);
  numbers("--control-from",
          "0 to 1: the fraction of the steps after which a ControlNet takes\n"
          "effect. Default: 0",
          f.control_from);
  numbers("--control-to", "0 to 1: the fraction of the steps after which it ends. Default: 1",
          f.control_to);
  read.texts("--control-mode", "N", "Input pictures",
             "Number of the picture's kind, for ControlNets that follow several",
             [&](const std::string& flag, const std::string& text) {
               f.control_modes.push_back(int(whole_number(flag, text, 0, kMostModes)));
             });
}

void add_reference_cache_flag(FlagReader& read, PictureFlags& f, const std::string& group) {
  read.text("--reference-cache", "WHEN", group,
            "auto: models trained for it look at references only once, before\n"
            "the first step; off: every model does in each step. Default: auto",
            [&](const std::string& flag, const std::string& text) {
              f.reference_cache = choice<ReferenceCache>(
                  flag, text, {{"auto", ReferenceCache::kAuto}, {"off", ReferenceCache::kOff}});
            });
}

void add_resolution_flag(FlagReader& read, PictureFlags& f) {
  read.text("--resolution", "PIXELS", "Input pictures",
            "640 or 1024: what Qwen-Image-Layered draws has the area of a square\n"
            "of this side in the shape of --reference, instead of a --size.\n"
            "Default: 640",
            into(f.resolution, whole_from(1, kMaxSide)));
}

// The picture that is started from, and which of its area is redrawn.
void add_start_flags(FlagReader& read, PictureFlags& f) {
  read.path("--init", "FILE", "Input pictures",
            "Start from this PNG, JPEG or WebP picture, resized to --size,\n"
            "instead of from noise alone. --size defaults to the picture's",
            f.init);
  read.text("--strength", "X", "Input pictures",
            "0 to 1: how much noise is added to --init, and so how much of it\n"
            "is redrawn: the fraction of the steps that run.\n"
            "Default: the model's, usually 0.6",
            into(f.strength, finite_number));
  read.text("--mask", "FILE", "Input pictures",
            "A mask of the size of --init: white areas are redrawn, black ones\n"
            "kept. alpha: redraw the transparent areas of --init",
            [&](const std::string& flag, const std::string& text) {
              require(!text.empty(), flag, " should be a path, it is empty");
              f.mask_is_alpha = text == "alpha";
              if (!f.mask_is_alpha) f.mask = text;
            });
  read.text("--mask-blur", "R", "Input pictures",
            "Soften the mask's edges by a Gaussian with this standard\n"
            "deviation in pixels. Default: 0",
            into(f.mask_blur, finite_number));
  read.text("--padding-crop", "PIXELS", "Input pictures",
            "Crop --init to the white area of the mask and a margin of so many\n"
            "pixels, draw the crop at --size and paste it back into --init",
            into(f.padding_crop, whole_from(0, kMaxSide)));
}

// How many pictures ControlNets follow: one to fill in, if no others.
std::size_t num_followed(const PictureFlags& f, const PipelineOptions& options) {
  const bool is_masked = !f.init.empty() && (!f.mask.empty() || f.mask_is_alpha);
  const bool is_filled = f.controls.empty() && !options.controlnets.empty() && is_masked;
  return is_filled ? 1 : f.controls.size();
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
  const auto followed = num_followed(f, options);
  require(options.controlnets.empty() || followed > 0,
          "--controlnet needs --control, the picture that it follows, or --init and --mask, the "
          "picture that it fills in");
  check_count("--control-scale", f.control_scales.size(), followed);
  check_count("--control-from", f.control_from.size(), followed);
  check_count("--control-to", f.control_to.size(), followed);
  check_count("--control-mode", f.control_modes.size(), followed);
}

void add_layers_flag(FlagReader& read, std::optional<int>& layers, const std::string& group,
                     const std::string& help) {
  read.text("--layers", "N", group, help, into(layers, whole_from(1, kMostFrames)));
}

void add_reference_flags(FlagReader& read, PictureFlags& f, const std::string& group) {
  read.path("--init", "FILE", group, "Adds a picture of this size, for models that look at it",
            f.init);
  read.path("--mask", "FILE", group, "A mask of the size of --init: the area to redraw", f.mask);
  read.texts("--reference", "FILE", group,
             "Adds a reference of this picture's size; may be given several\n"
             "times",
             [&](const std::string& flag, const std::string& text) {
               require(!text.empty(), flag, " should be a path, it is empty");
               f.references.emplace_back(text);
             });
  add_reference_cache_flag(read, f, group);
}

void add_input_picture_flags(FlagReader& read, PictureFlags& f) {
  add_start_flags(read, f);
  read.texts("--reference", "FILE[=SCALE]", "Input pictures",
             "A picture for an editing model, or --redux, to look at; may be\n"
             "given several times. SCALE is its weight in --redux. Default: 1",
             [&](const std::string& flag, const std::string& text) {
               const auto [file, scale] = reference_of(text);
               require(!file.empty(), flag, " should be a path, it is empty");
               f.references.emplace_back(file);
               f.reference_scales.push_back(scale);
             });
  add_reference_cache_flag(read, f, "Input pictures");
  add_resolution_flag(read, f);
  add_control_flags(read, f);
  read.text("--max-pixels", "N", "Input pictures",
            "Refuse input pictures with more pixels, before decoding them.\n"
            "Default: 67108864",
            [&](const std::string& flag, const std::string& text) {
              f.max_pixels = std::uint64_t(whole_number(flag, text, 1, kMostPixels));
            });
}

}  // namespace braid
