#include "pipeline/request/settings.h"

#include <algorithm>
#include <cmath>

#include <c10/util/accumulate.h>

#include "base/error.h"
#include "base/request_error.h"
#include "base/utf8.h"
#include "pipeline/files/model_files.h"
#include "pipeline/request/check_pictures.h"
#include "pipeline/request/choice.h"
#include "pipeline/request/guidance_settings.h"
#include "pipeline/request/latents.h"
#include "pipeline/request/limits.h"

namespace braid {
namespace {

// Pictures larger than this are decoded in tiles unless told otherwise: the untiled decoder needs
// about 2.5 GB per million pixels in float32.
constexpr std::int64_t kAutoTilingPixels = 2048 * 2048;

void check_text(const char* field, const char* name, const std::string& text) {
  require_field(field, is_valid_utf8(text), "the ", name, " should be UTF-8 text");
}

void check_choices(const Request& r) {
  checked_choice("vae_tiling", r.vae_tiling, VaeTiling::kOff);
  checked_choice("output", r.output, Output::kLatents);
  checked_choice("pictures.reference_cache", r.pictures.reference_cache, ReferenceCache::kOff);
}

bool has_words(const std::string& prompt) {
  return prompt.find_first_not_of(" \t\n\r") != prompt.npos;
}

void check_texts(const Request& r, const RequestLimits& limits) {
  require_field("prompt_2", limits.num_texts > 1 || (r.prompts_2.empty() && !r.negative_prompt_2),
                "this model has one text encoder: it takes no second prompt");
  for (const auto& prompt : r.prompts) check_text("prompt", "prompt", prompt);
  for (const auto& prompt : r.prompts_2) check_text("prompt_2", "second prompt", prompt);
  check_text("negative_prompt", "negative prompt", r.negative_prompt.value_or(""));
  check_text("negative_prompt_2", "second negative prompt", r.negative_prompt_2.value_or(""));
  for (const auto& prompt : r.prompts)
    require_field(
        "prompt", limits.empty_prompt == EmptyPrompt::kDrawn || has_words(prompt),
        "this model needs a prompt that says what the reference shows: there is none, and Braid "
        "writes no captions");
}

std::vector<Prompt> pair_prompts(const Request& r) {
  require_field("prompt", !r.prompts.empty(), "there is no prompt");
  require_field("prompt_2", r.prompts_2.empty() || r.prompts_2.size() == r.prompts.size(),
                "there are ", r.prompts.size(), " prompts but ", r.prompts_2.size(),
                " second prompts");
  std::vector<Prompt> pairs;
  for (std::size_t i = 0; i < r.prompts.size(); ++i)
    pairs.push_back({.text = r.prompts[i], .second = r.prompts_2.empty() ? "" : r.prompts_2[i]});
  return pairs;
}

void lay_out(const Request& r, const RequestLimits& limits, std::vector<Prompt>& prompts) {
  if (r.boxes.empty()) return;
  require_field("boxes", bool(limits.laid_out),
                "this model takes no boxes: it was not trained to follow layouts");
  check_text("boxes", "boxes", r.boxes);
  for (auto& prompt : prompts)
    prompt.text = limits.laid_out(prompt.text, r.boxes, int(r.pictures.references.size()));
}

// Checked before; excludes a control model's own picture. A net that fills the initial picture in
// follows that, whether or not the request says how.
std::vector<FollowedPicture> followed_pictures(const PicturesIn& in, const PicturesTaken& taken) {
  static const std::vector<ControlPicture> kOnce(1);
  const bool fills_in = taken.nets_follow == PicturesTaken::NetsFollow::kMasked;
  const bool is_once = fills_in && in.init && in.controls.empty();
  std::vector<FollowedPicture> followed;
  if (taken.controlnet_modes.empty()) return followed;
  for (const auto& c : is_once ? kOnce : in.controls) {
    const auto net = net_of_control(followed.size(), taken.controlnet_modes.size());
    followed.push_back({.net = int(net),
                        .scale = c.scale,
                        .from = c.from,
                        .to = c.to,
                        .mode = taken.controlnet_modes[net] > 0 ? c.mode : std::nullopt});
  }
  return followed;
}

PictureSize asked_size(const Request& r, const RequestLimits& limits) {
  const int frames = drawn_frames(r, limits);
  if (r.width && r.height) return {.width = *r.width, .height = *r.height, .frames = frames};
  const auto otherwise = size_without_request(r.pictures, limits);
  return {.width = r.width.value_or(otherwise.width),
          .height = r.height.value_or(otherwise.height),
          .frames = frames};
}

// Checks the size asked for and warns if another one is drawn.
PictureSize checked_size(const Request& r, const RequestLimits& limits, const Warn& warn) {
  check_size(r, limits);
  check_frames(r, limits);
  const auto asked = asked_size(r, limits), drawn = drawn_size(r, limits);
  const int multiple = limits.size_multiple;
  const bool goes_up = limits.size_rounding == SizeRounding::kUp;
  const auto warn_of = [&](const char* name, int pixels, int rounded) {
    if (rounded != pixels && !limits.nearest_size)
      warn(text_of("the ", name, " ", pixels, " is rounded ", goes_up ? "up" : "down", " to ",
                   rounded, ", a multiple of ", multiple));
  };
  warn_of("width", asked.width, drawn.width);
  warn_of("height", asked.height, drawn.height);
  if (drawn.frames != asked.frames)
    warn(text_of("the number of frames ", asked.frames, " is rounded down to ", drawn.frames,
                 ", one more than a multiple of ", limits.frames.step));
  const bool differs = drawn.width != asked.width || drawn.height != asked.height;
  if (limits.nearest_size && (r.width || r.height) && differs)
    warn(text_of("the size ", asked.width, "x", asked.height, " becomes ", drawn.width, "x",
                 drawn.height, ", the closest shape that the model was trained for"));
  return drawn;
}

void settle_steps(const Request& r, const RequestLimits& limits, const Warn& warn, Settings& s) {
  within("steps", "number of steps", r.steps.value_or(limits.defaults.steps), 1, kMostSteps);
  const auto settled = settle_sampling(r.sampling, limits.defaults.sampling, r.steps,
                                       limits.defaults.steps_without_list(), limits.sampling, warn);
  s.sampling = settled.sampling;
  s.steps = settled.steps;
  s.num_steps = settled.num_steps;
}

// How much noise is added to the picture, and where it is redrawn. The steps are settled.
void start_from(const Request& r, const RequestLimits& limits, Settings& s) {
  const auto& pictures = r.pictures;
  const auto& taken = limits.pictures;
  s.mask_blur = pictures.mask_blur;
  s.padding_crop = pictures.padding_crop;
  const bool is_as_asked = taken.crop_shape == PicturesTaken::CropShape::kAsked;
  s.crop_shape = is_as_asked ? asked_size(r, limits) : s.size();
  s.strength = strength_of(pictures, taken);
  if (s.strength) s.first_step = first_step_of(s.num_steps, *s.strength);
}

}  // namespace

int drawn_frames(const Request& r, const RequestLimits& limits) {
  const auto& frames = limits.frames;
  if (frames.kind == FrameKind::kMoment) return r.frames.value_or(limits.defaults.frames);
  return r.layers ? *r.layers + frames.unreturned() : limits.defaults.frames;
}

void check_frames(const Request& r, const RequestLimits& limits) {
  const auto& frames = limits.frames;
  const int asked = drawn_frames(r, limits);
  if (frames.kind == FrameKind::kLayer) {
    require_field("frames", !r.frames,
                  "this model draws layers of a picture: ask for layers, not for frames");
    within("layers", "number of layers", asked - frames.unreturned(), 1,
           frames.most - frames.unreturned());
    return;
  }
  require_field("layers", !r.layers, "this model draws no layers of a picture");
  require_field("frames", frames.most > 1 || asked == 1,
                "this model draws pictures, of one frame each: ", asked, " frames were asked for");
  within("frames", "number of frames", asked, 1, frames.most);
}

void check_size(const Request& r, const RequestLimits& limits) {
  const int multiple = limits.size_multiple;
  const int least = limits.nearest_size || limits.size_rounding == SizeRounding::kUp ? 1 : multiple;
  const auto asked = asked_size(r, limits);
  for (const auto& [name, pixels] : {std::pair("width", asked.width), {"height", asked.height}}) {
    within(name, name, pixels, least, limits.largest_side);
    require_field(name, limits.size_rounding != SizeRounding::kNever || pixels % multiple == 0,
                  "the ", name, " should be a multiple of ", multiple, ", it is ", pixels);
  }
}

int num_branches(const Request& request, const RequestLimits& limits) {
  return true_scale(request, limits) ? 2 : 1;
}

int most_branches(const RequestLimits& limits) {
  const auto kind = limits.guidance;
  return kind == GuidanceKind::kTrue || kind == GuidanceKind::kEmbeddedOrTrue ? 2 : 1;
}

PictureSize drawn_size(const Request& request, const RequestLimits& limits) {
  const auto asked = asked_size(request, limits);
  const int frames = 1 + (asked.frames - 1) / limits.frames.step * limits.frames.step;
  if (limits.nearest_size) {
    auto nearest = limits.nearest_size(asked);
    nearest.frames = frames;
    return nearest;
  }
  const int multiple = limits.size_multiple;
  const int added = limits.size_rounding == SizeRounding::kUp ? multiple - 1 : 0;
  const auto rounded = [&](int pixels) {
    return std::max(1, (pixels + added) / multiple) * multiple;
  };
  return {.width = rounded(asked.width), .height = rounded(asked.height), .frames = frames};
}

std::int64_t pictures_per_round(int batch_size, const Degrees& degrees) {
  return std::int64_t(batch_size) * degrees.dp * degrees.pp;
}

int pictures_per_round(const Settings& settings, const Degrees& degrees) {
  return int(
      std::min<std::int64_t>(pictures_per_round(settings.batch_size, degrees), kMostPictures));
}

bool is_tiled(VaeTiling tiling, PictureSize size) {
  if (tiling != VaeTiling::kAuto) return tiling == VaeTiling::kOn;
  return std::int64_t(size.width) * size.height > kAutoTilingPixels;
}

RequestLimits limits_for(const Request& request, const RequestLimits& limits) {
  auto changed = limits;
  if (request.adapters)
    changed.defaults = defaults_with(open_adapters(*request.adapters), limits.defaults);
  return changed;
}

Settings settle(const Request& r, const RequestLimits& limits, const Warn& warn_or_none) {
  const Warn warn = warn_or_none ? warn_or_none : [](const std::string&) {};
  const auto& d = limits.defaults;
  Settings s;
  check_choices(r);
  check_texts(r, limits);
  s.prompts = pair_prompts(r);
  lay_out(r, limits, s.prompts);
  settle_guidance(r, limits, warn, s);
  check_pictures(r, limits.pictures);
  warn_of_unused(r.pictures, limits, warn);
  require_field("resolution", !r.pictures.resolution || (!r.width && !r.height),
                "both a resolution and a size were given: give one of them");
  const auto size = checked_size(r, limits, warn);
  s.width = size.width;
  s.height = size.height;
  s.frames = size.frames;
  s.first_frame = limits.frames.unreturned();
  s.returned = region_returned(r, limits.pictures);
  settle_steps(r, limits, warn, s);
  if (r.pictures.init) start_from(r, limits, s);
  s.followed = followed_pictures(r.pictures, limits.pictures);
  if (may_cache_references(limits)) s.reference_cache = r.pictures.reference_cache;
  s.reference_scales = r.pictures.reference_scales;
  if (limits.pictures.references == PicturesTaken::References::kBehindPrompt)
    s.reference_scales.resize(r.pictures.references.size(), 1);
  s.max_sequence_length =
      within("max_sequence_length", "maximum sequence length",
             r.max_sequence_length.value_or(d.max_sequence_length), 1, limits.max_text_tokens);
  s.seed = r.seed;
  s.num_images = within(
      "n", "number of pictures", r.num_images, 1,
      std::max(1, kMostPictures / int(std::min<std::size_t>(r.prompts.size(), kMostPictures))));
  s.batch_size = within("batch_size", "batch size", r.batch_size, 1, kMostPictures);
  s.vae_tiling = r.vae_tiling;
  s.output = r.output;
  return s;
}

Request completed(const Request& request, const Settings& s) {
  auto all = request;
  if (!s.returned) {  // which a size would prevent
    all.width = s.requested_size().width;
    all.height = s.requested_size().height;
    all.pictures.resolution.reset();
  }
  if (s.layers() > 0) all.layers = s.layers();
  if (s.layers() == 0 && s.frames > 1) all.frames = s.frames;
  all.steps = s.steps;
  all.sampling = s.sampling;
  all.guidance = s.guidance;
  all.max_sequence_length = s.max_sequence_length;
  all.true_cfg = s.negative ? s.true_cfg : 1;
  all.guidance_rescale = s.negative ? s.true_guidance.rescale : 0;
  all.cfg_norm_cap = s.negative ? s.true_guidance.norm_cap : 0;
  all.cfg_until = s.negative ? s.true_guidance.until : 1;
  all.cfg_normalize = s.cfg_normalize;
  all.pictures.reference_cache = s.reference_cache;
  all.pictures.strength = s.strength;
  all.negative_prompt = s.negative ? std::optional(s.negative->text) : std::nullopt;
  if (!s.negative) all.negative_prompt_2.reset();
  return all;
}

Schedule schedule_of(const Settings& s, const Family& family) {
  const auto start = s.starts_from_noise_alone() ? StartsFrom::kNoise : StartsFrom::kPicture;
  return family.schedule_as(s.sampling, s.steps, s.size(), start);
}

LatentShapes latent_shapes(const Settings& settings, const Family& family) {
  const std::int64_t pictures = settings.num_pictures();
  LatentShapes shapes{
      .packed = {pictures, family.num_tokens(settings.size()), family.shape().in_width},
      .unpacked = family.latent_shape(settings.size())};
  shapes.unpacked.insert(shapes.unpacked.begin(), pictures);
  return shapes;
}

void check_initial_latents(const Request& request, const Settings& settings, const Family& family) {
  if (!request.latents) return;
  const auto shapes = latent_shapes(settings, family);
  check_latents("the initial latents", *request.latents, {shapes.packed, shapes.unpacked});
  check_finite("initial latents", request.latents->values);
}

}  // namespace braid
