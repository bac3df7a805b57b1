#include "pipeline/request/settings.h"

#include <algorithm>
#include <cmath>

#include <c10/util/accumulate.h>

#include "base/error.h"
#include "base/utf8.h"
#include "pipeline/files/model_files.h"
#include "pipeline/request/check_pictures.h"
#include "pipeline/request/latents.h"
#include "pipeline/request/limits.h"

namespace braid {
namespace {

// Pictures larger than this are decoded in tiles unless told otherwise: the untiled decoder needs
// about 2.5 GB per million pixels in float32.
constexpr std::int64_t kAutoTilingPixels = 2048 * 2048;

template <class Number>
Number within(const char* name, Number value, Number low, Number high) {
  require(value >= low && value <= high, "the ", name, " should lie between ", low, " and ", high,
          ", it is ", value);
  return value;
}

void check_text(const char* name, const std::string& text) {
  require(is_valid_utf8(text), "the ", name, " should be UTF-8 text");
}

bool has_words(const std::string& prompt) {
  return prompt.find_first_not_of(" \t\n\r") != prompt.npos;
}

void check_texts(const Request& r, const RequestLimits& limits) {
  require(limits.num_texts > 1 || (r.prompts_2.empty() && !r.negative_prompt_2),
          "this model has one text encoder: it takes no second prompt");
  for (const auto& prompt : r.prompts) check_text("prompt", prompt);
  for (const auto& prompt : r.prompts_2) check_text("second prompt", prompt);
  check_text("negative prompt", r.negative_prompt.value_or(""));
  check_text("second negative prompt", r.negative_prompt_2.value_or(""));
  for (const auto& prompt : r.prompts)
    require(
        limits.empty_prompt == EmptyPrompt::kDrawn || has_words(prompt),
        "this model needs a prompt that says what the reference shows: there is none, and Braid "
        "writes no captions");
}

std::vector<Prompt> pair_prompts(const Request& r) {
  require(!r.prompts.empty(), "there is no prompt");
  require(r.prompts_2.empty() || r.prompts_2.size() == r.prompts.size(), "there are ",
          r.prompts.size(), " prompts but ", r.prompts_2.size(), " second prompts");
  std::vector<Prompt> pairs;
  for (std::size_t i = 0; i < r.prompts.size(); ++i)
    pairs.push_back({.text = r.prompts[i], .second = r.prompts_2.empty() ? "" : r.prompts_2[i]});
  return pairs;
}

void lay_out(const Request& r, const RequestLimits& limits, std::vector<Prompt>& prompts) {
  if (r.boxes.empty()) return;
  require(bool(limits.laid_out), "this model takes no boxes: it was not trained to follow layouts");
  check_text("boxes", r.boxes);
  for (auto& prompt : prompts)
    prompt.text = limits.laid_out(prompt.text, r.boxes, int(r.pictures.references.size()));
}

double guidance_of(const Request& r, const RequestLimits& limits) {
  return r.guidance.value_or(limits.defaults.guidance);
}

// The scale of true guidance; nothing where it does not run.
std::optional<double> true_scale(const Request& r, const RequestLimits& limits) {
  const bool is_own = limits.guidance == GuidanceKind::kTrue;
  const bool is_beside = limits.guidance == GuidanceKind::kEmbeddedOrTrue && r.negative_prompt;
  if (!is_own && !is_beside) return {};
  const auto scale = is_own ? guidance_of(r, limits) : r.true_cfg;
  // Guidance beside a model's own runs above 1.
  const auto scales = is_own ? limits.guided_scales : GuidedScales::kAboveNeutral;
  return is_on(limits.guided_from, scales, scale) ? std::optional(scale) : std::nullopt;
}

// Warns of or refuses a negative prompt without effect, and scales that mean nothing to the model.
void check_guidance(const Request& r, const RequestLimits& limits, const Warn& warn) {
  const bool runs = true_scale(r, limits).has_value();
  const bool is_above = limits.guided_scales == GuidedScales::kAboveNeutral;
  require(r.negative_prompt || !r.negative_prompt_2,
          "a second negative prompt needs a negative prompt");
  switch (limits.guidance) {
    case GuidanceKind::kNone:
      require(!r.negative_prompt, "this model has no negative prompt: it was distilled to follow ",
              "prompts without guidance");
      if (r.guidance.value_or(0) > 1)
        warn("the guidance scale is not used: this model was distilled to follow prompts without");
      break;
    case GuidanceKind::kEmbedded:
      require(!r.negative_prompt, "this model has no negative prompt: its guidance is a number ",
              "that it was distilled for");
      break;
    case GuidanceKind::kEmbeddedOrTrue:
      if (r.negative_prompt && !runs)
        warn("the negative prompt is not used: that takes a true guidance scale above 1");
      if (!r.negative_prompt && r.true_cfg > 1)
        warn("true guidance needs a negative prompt: none is given, so it is off");
      return;
    case GuidanceKind::kTrue:
      if (r.negative_prompt && !runs)
        warn(text_of("the negative prompt is not used: that takes a guidance scale ",
                     is_above ? "above " : "other than ", neutral_scale(limits.guided_from)));
      break;
  }
  require(r.true_cfg == 1, "this model has no true guidance beside its own: ",
          limits.guidance == GuidanceKind::kTrue ? "the guidance scale is that of true guidance"
                                                 : "its guidance is a single branch");
}

Prompt negative_of(const Request& r, const RequestLimits& limits) {
  return {.text = r.negative_prompt.value_or(limits.negative_prompt),
          .second = r.negative_prompt_2.value_or("")};
}

// How many channels' length is kept.
std::int64_t kept_channels(const Request& r, const RequestLimits& limits) {
  const bool is_usual = limits.kept_lengths == KeptLengths::kUsually;
  require(!r.cfg_normalize.value_or(false) || limits.guided_channels > 0,
          "this model's guidance keeps no lengths: it is not normalized");
  return r.cfg_normalize.value_or(is_usual) ? limits.guided_channels : 0;
}

TrueGuidance true_guidance_of(const Request& r, const RequestLimits& limits) {
  const TrueGuidance guidance{
      .from = limits.guided_from,
      .scale = true_scale(r, limits).value_or(1),
      .rescale = within("guidance rescale", r.guidance_rescale, 0.0, 1.0),
      .norm_cap = checked_number("norm cap of guidance", r.cfg_norm_cap),
      .kept_channels = kept_channels(r, limits),
      .until = within("part of the way that true guidance runs", r.cfg_until, 0.0, 1.0),
      .way_from = limits.guided_way_from};
  require(guidance.norm_cap >= 0, "the norm cap of guidance should be at least 0, it is ",
          guidance.norm_cap);
  return guidance;
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

void warn_of_unused_guidance(const Request& r, const RequestLimits& limits, const Warn& warn) {
  const bool is_guided = true_scale(r, limits).has_value();
  if (!is_guided && (r.guidance_rescale > 0 || r.cfg_norm_cap > 0))
    warn("guidance is not rescaled or capped: that takes true guidance, which is off");
  if (!is_guided && r.cfg_until < 1)
    warn("true guidance is off from the start: the part of the way that it runs is not used");
  if (!r.cfg_normalize) return;
  if (limits.guided_channels == 0)
    warn("whether guidance is normalized is not used: this model's guidance keeps no lengths");
  else if (!is_guided)
    warn("whether guidance is normalized is not used: true guidance is off");
}

PictureSize asked_size(const Request& r, const RequestLimits& limits) {
  const auto otherwise = size_without_request(r.pictures, limits);
  return {.width = r.width.value_or(otherwise.width),
          .height = r.height.value_or(otherwise.height),
          .frames = drawn_frames(r, limits)};
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
  within("number of steps", r.steps.value_or(limits.defaults.steps), 1, kMostSteps);
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
    require(!r.frames, "this model draws layers of a picture: ask for layers, not for frames");
    within("number of layers", asked - frames.unreturned(), 1, frames.most - frames.unreturned());
    return;
  }
  require(!r.layers, "this model draws no layers of a picture");
  require(frames.most > 1 || asked == 1, "this model draws pictures, of one frame each: ", asked,
          " frames were asked for");
  within("number of frames", asked, 1, frames.most);
}

void check_size(const Request& r, const RequestLimits& limits) {
  const int multiple = limits.size_multiple;
  const int least = limits.nearest_size || limits.size_rounding == SizeRounding::kUp ? 1 : multiple;
  const auto asked = asked_size(r, limits);
  for (const auto& [name, pixels] : {std::pair("width", asked.width), {"height", asked.height}}) {
    within(name, pixels, least, limits.largest_side);
    require(limits.size_rounding != SizeRounding::kNever || pixels % multiple == 0, "the ", name,
            " should be a multiple of ", multiple, ", it is ", pixels);
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
  check_texts(r, limits);
  s.prompts = pair_prompts(r);
  lay_out(r, limits, s.prompts);
  s.true_cfg = checked_number("true guidance scale", r.true_cfg);
  s.guidance = checked_number("guidance scale", guidance_of(r, limits));
  check_guidance(r, limits, warn);
  s.true_guidance = true_guidance_of(r, limits);
  if (true_scale(r, limits)) s.negative = negative_of(r, limits);
  if (s.negative && limits.guided_channels > 0) s.cfg_normalize = r.cfg_normalize;
  warn_of_unused_guidance(r, limits, warn);
  check_pictures(r, limits.pictures);
  warn_of_unused(r.pictures, limits, warn);
  require(!r.pictures.resolution || (!r.width && !r.height),
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
      within("maximum sequence length", r.max_sequence_length.value_or(d.max_sequence_length), 1,
             limits.max_text_tokens);
  s.seed = r.seed;
  s.num_images = within(
      "number of pictures", r.num_images, 1,
      std::max(1, kMostPictures / int(std::min<std::size_t>(r.prompts.size(), kMostPictures))));
  s.batch_size = within("batch size", r.batch_size, 1, kMostPictures);
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
  for (const float value : request.latents->values)
    checked_number("value of initial latents", value);
}

}  // namespace braid
