#include "pipeline/request/guidance_settings.h"

#include <string>

#include "base/error.h"
#include "base/request_error.h"

namespace braid {
namespace {

double guidance_of(const Request& r, const RequestLimits& limits) {
  return r.guidance.value_or(limits.embeds_guidance ? limits.defaults.guidance : 0);
}

// Schnell's transformer has no input for the guidance that dev's was distilled for.
GuidanceKind guidance_kind_of(const RequestLimits& limits) {
  return limits.embeds_guidance ? limits.guidance : GuidanceKind::kNone;
}

std::string below_one(const Request& r, const std::string& so) {
  return text_of("the true guidance scale ", r.true_cfg, " is taken as 1, which is off", so);
}

// Warns of or refuses a negative prompt without effect, and scales that mean nothing to the model.
void check_guidance(const Request& r, const RequestLimits& limits, const Warn& warn) {
  const bool runs = true_scale(r, limits).has_value();
  const bool is_above = limits.guided_scales == GuidedScales::kAboveNeutral;
  require_field("negative_prompt_2", r.negative_prompt || !r.negative_prompt_2,
                "a second negative prompt needs a negative prompt");
  if (!limits.embeds_guidance && r.guidance.value_or(0) > 1)
    warn("the guidance scale is not used: this model takes no guidance as a number");
  switch (limits.guidance) {
    case GuidanceKind::kNone:
      require_field("negative_prompt", !r.negative_prompt,
                    "this model has no negative prompt: it was distilled to follow ",
                    "prompts without guidance");
      if (r.guidance.value_or(0) > 1)
        warn("the guidance scale is not used: this model was distilled to follow prompts without");
      break;
    case GuidanceKind::kEmbedded:
      require_field("negative_prompt", !r.negative_prompt,
                    "this model has no negative prompt: its guidance is a number ",
                    "that it was distilled for");
      break;
    case GuidanceKind::kEmbeddedOrTrue:
      if (r.true_cfg < 1)
        warn(below_one(r, r.negative_prompt ? ": the negative prompt is not used" : ""));
      else if (r.negative_prompt && !runs)
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
  if (r.true_cfg < 1) warn(below_one(r, ""));
  require_field("true_cfg", r.true_cfg <= 1, "this model has no true guidance beside its own: ",
                limits.guidance == GuidanceKind::kTrue
                    ? "the guidance scale is that of true guidance"
                    : "its guidance is a single branch");
}

Prompt negative_of(const Request& r, const RequestLimits& limits) {
  return {.text = r.negative_prompt.value_or(limits.negative_prompt),
          .second = r.negative_prompt_2.value_or("")};
}

// How many channels' length is kept.
std::int64_t kept_channels(const Request& r, const RequestLimits& limits) {
  const bool is_usual = limits.kept_lengths == KeptLengths::kUsually;
  require_field("cfg_normalize", !r.cfg_normalize.value_or(false) || limits.guided_channels > 0,
                "this model's guidance keeps no lengths: it is not normalized");
  return r.cfg_normalize.value_or(is_usual) ? limits.guided_channels : 0;
}

TrueGuidance true_guidance_of(const Request& r, const RequestLimits& limits) {
  const TrueGuidance guidance{
      .from = limits.guided_from,
      .scale = true_scale(r, limits).value_or(1),
      .rescale = within("guidance_rescale", "guidance rescale", r.guidance_rescale, 0.0, 1.0),
      .norm_cap = checked_number("cfg_norm_cap", "norm cap of guidance", r.cfg_norm_cap),
      .kept_channels = kept_channels(r, limits),
      .until =
          within("cfg_until", "part of the way that true guidance runs", r.cfg_until, 0.0, 1.0),
      .way_from = limits.guided_way_from};
  require_field("cfg_norm_cap", guidance.norm_cap >= 0,
                "the norm cap of guidance should be at least 0, it is ", guidance.norm_cap);
  return guidance;
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

}  // namespace

std::optional<double> true_scale(const Request& r, const RequestLimits& limits) {
  const bool is_own = limits.guidance == GuidanceKind::kTrue;
  const bool is_beside = limits.guidance == GuidanceKind::kEmbeddedOrTrue && r.negative_prompt;
  if (!is_own && !is_beside) return {};
  const auto scale = is_own ? guidance_of(r, limits) : r.true_cfg;
  // Guidance beside a model's own runs above 1.
  const auto scales = is_own ? limits.guided_scales : GuidedScales::kAboveNeutral;
  return is_on(limits.guided_from, scales, scale) ? std::optional(scale) : std::nullopt;
}

void settle_guidance(const Request& r, const RequestLimits& limits, const Warn& warn, Settings& s) {
  s.true_cfg = checked_number("true_cfg", "true guidance scale", r.true_cfg);
  require_field("true_cfg", s.true_cfg >= 0, "the true guidance scale should be at least 0, it is ",
                s.true_cfg);
  s.guidance = checked_number("guidance", "guidance scale", guidance_of(r, limits));
  s.guidance_kind = guidance_kind_of(limits);
  check_guidance(r, limits, warn);
  s.true_guidance = true_guidance_of(r, limits);
  if (true_scale(r, limits)) s.negative = negative_of(r, limits);
  if (s.negative && limits.guided_channels > 0) s.cfg_normalize = r.cfg_normalize;
  warn_of_unused_guidance(r, limits, warn);
}

}  // namespace braid
