#include "serve/body/web_ui_fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/ascii.h"
#include "base/error.h"
#include "base/json.h"
#include "serve/api_error.h"
#include "serve/body/picture_request.h"

namespace braid::serve {
namespace {

constexpr std::size_t kLongestShown = 100;  // characters of a client's name

struct MissingFeature {
  const char* field;
  const char* what;
  double neutral = 0;  // a number that changes nothing, as negative ones do where it is 0
};
constexpr MissingFeature kMissing[] = {
    {"enable_hr", "is no second pass at a higher resolution"},
    {"refiner_checkpoint", "is no refiner"},
    {"restore_faces", "is no face restoration"},
    {"tiling", "are no tileable pictures"},
    {"styles", "are no styles"},
    {"subseed_strength", "are no variation seeds"},
    {"seed_resize_from_w", "are no seeds of other sizes"},
    {"seed_resize_from_h", "are no seeds of other sizes"},
    {"initial_noise_multiplier", "is no other noise", 1},
    {"latent_mask", "is no second mask"},
    {"script_name", "are no scripts"},
    {"infotext", "are no settings in a text"},
};

// What means nothing here, and would be another picture or file elsewhere.
struct Unfollowed {
  std::string_view field;
  const char* what;
  const char* defaults = "";  // a JSON list of what the web UI's clients send unasked; empty: off
};
constexpr const char* kNoSecondPass = "is no second pass at a higher resolution";
constexpr const char* kNoNoise = "is no noise setting of samplers";
constexpr Unfollowed kUnfollowed[] = {
    {"clip_skip", "is no choice of a text encoder's layer", "[0, 1]"},
    {"eta", kNoNoise, "[0, 1]"},
    {"s_churn", kNoNoise},
    {"s_min_uncond", kNoNoise},
    {"s_tmin", kNoNoise},
    {"s_tmax", kNoNoise},
    {"s_noise", kNoNoise, "[0, 1]"},
    {"save_images", "is no saving of pictures on the server"},
    {"override_settings_restore_afterwards", "are no settings that stay after a request", "[true]"},
    {"disable_extra_networks", "is no way to leave out a prompt's LoRAs"},
    {"subseed", "are no variation seeds"},
    {"refiner_switch_at", "is no refiner", "[0, 0.8, 1]"},
    {"script_args", "are no scripts"},
    {"image_cfg_scale", "is no guidance by a picture", "[0, 1.5]"},
    {"include_init_images", "are no pictures in the answer but new ones"},
    {"mask_round", "are no masks but soft ones", "[true]"},
    {"firstpass_image", kNoSecondPass},
    {"firstphase_width", kNoSecondPass},
    {"firstphase_height", kNoSecondPass},
    {"denoising_strength", "is no picture to start from", "[0, 0.7, 0.75]"},
    {"hr_scale", kNoSecondPass, "[0, 1, 2]"},
    {"hr_upscaler", kNoSecondPass, "[\"\", \"None\", \"Latent\"]"},
    {"hr_second_pass_steps", kNoSecondPass},
    {"hr_resize_x", kNoSecondPass},
    {"hr_resize_y", kNoSecondPass},
    {"hr_checkpoint_name", kNoSecondPass},
    {"hr_additional_modules", kNoSecondPass},
    {"hr_sampler_name", kNoSecondPass},
    {"hr_scheduler", kNoSecondPass},
    {"hr_prompt", kNoSecondPass},
    {"hr_negative_prompt", kNoSecondPass},
    {"hr_cfg", kNoSecondPass, "[0, 1, 7]"},
    {"hr_distilled_cfg", kNoSecondPass, "[0, 3.5]"},
};

// Fields without effect also in the web UI, or whose wish is what happens anyway. Those of masks
// are read where there is one.
constexpr const char* kIdle[] = {"do_not_save_samples",
                                 "do_not_save_grid",
                                 "force_task_id",
                                 "mask_blur",
                                 "mask_blur_x",
                                 "mask_blur_y",
                                 "inpainting_fill",
                                 "inpaint_full_res",
                                 "inpaint_full_res_padding",
                                 "inpainting_mask_invert",
                                 "resize_mode"};

std::string shown(const std::string& name) { return "'" + name.substr(0, kLongestShown) + "'"; }

bool is_off(const Json& value, double neutral = 0) {
  if (value.is_null()) return true;
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number()) {
    const auto number = value.get<double>();
    return number == neutral || (neutral == 0 && number < 0);
  }
  if (value.is_string()) {
    const auto text = ascii_lower_case(value.get<std::string>());
    return text.empty() || text == "none" || text.starts_with("use same ") ||
           truth_of(text) == false;
  }
  return std::all_of(value.begin(), value.end(), [](const Json& one) { return is_off(one); });
}

bool is_default(const Json& value, const char* defaults) {
  if (*defaults == '\0') return is_off(value);
  const auto list = Json::parse(defaults);
  return std::find(list.begin(), list.end(), value) != list.end();
}

// A script has its arguments in order, of which the first turns many on or off; those of ControlNet
// are units that have a switch each.
bool is_script_off(const Json& script) {
  if (!script.is_object()) return is_off(script);
  const auto args = script.find("args");
  if (args == script.end() || is_off(*args)) return true;
  if (!args->is_array()) return false;
  const auto is_unit_off = [](const Json& unit) {
    return unit.is_object() && unit.contains("enabled") ? is_off(unit["enabled"]) : is_off(unit);
  };
  return args->front() == Json(false) || std::all_of(args->begin(), args->end(), is_unit_off);
}

void refuse_scripts(const Json& scripts) {
  if (!scripts.is_object()) return;
  for (const auto& [name, script] : scripts.items()) {
    if (is_script_off(script)) continue;
    if (ascii_lower_case(name) == "controlnet")
      refuse("alwayson_scripts",
             "ControlNet units are not supported here: POST /v1/jobs takes 'control'");
    refuse("alwayson_scripts", "the script " + shown(name) + " is not supported here");
  }
}

// Null if the field is absent.
const Json& value_of(const Fields& fields, const char* name) {
  static const Json kNone;
  const auto it = fields.json().find(name);
  return it == fields.json().end() ? kNone : *it;
}

bool has_embedded_guidance(const Backend& backend) {
  const auto kind = backend.info.guidance_kind;
  const bool may_have = kind == GuidanceKind::kEmbedded || kind == GuidanceKind::kEmbeddedOrTrue;
  return may_have && backend.embeds_guidance;  // schnell's transformer has no such input
}

const char* kind_of_guidance(const Backend& backend) {
  if (backend.info.guidance_kind == GuidanceKind::kTrue)
    return backend.unguided == 0 ? kTrueGuidanceFrom0 : kTrueGuidance;
  return has_embedded_guidance(backend) ? kEmbeddedGuidance : kNoGuidance;
}

// The model's own scale: some add the difference to the prompt's branch, and are off at 0.
double own_scale(double cfg, const Backend& backend) { return cfg - 1 + backend.unguided; }

// A scale below 1 would lead towards the negative prompt.
void turn_off_true_guidance(double cfg, const std::string& negative, const Backend& backend,
                            Fields& fields, Request& request) {
  if (cfg < 0)
    refuse("cfg_scale", text_of("'cfg_scale' should be at least 0, where 1 is off, it is ", cfg));
  fields.warn(text_of("'cfg_scale' ", cfg, " is taken as 1, which is off",
                      negative.empty() ? "" : ": the negative prompt is not used"));
  if (backend.info.guidance_kind == GuidanceKind::kTrue) request.guidance = backend.unguided;
}

void read_true_guidance(std::optional<double> cfg, const std::string& negative,
                        const Backend& backend, Fields& fields, Request& request) {
  const bool is_own = backend.info.guidance_kind == GuidanceKind::kTrue;
  const bool is_distilled = !is_own || backend.info.guidance <= backend.unguided;
  const bool is_on = cfg.value_or(1) > 1;
  if (is_distilled && negative.empty()) {
    if (is_on)
      fields.warn(text_of("'cfg_scale' ", *cfg, " is not used: this model was distilled to do ",
                          "without true guidance, and takes it only with a negative prompt"));
    return;
  }
  if (is_own && cfg) request.guidance = own_scale(*cfg, backend);
  if (is_own && !negative.empty()) request.negative_prompt = negative;
  if (is_own) return;
  if (!is_on)
    return fields.warn("the negative prompt is not used: that takes a 'cfg_scale' above 1");
  request.negative_prompt = negative;
  request.true_cfg = *cfg;
}

void warn_of_settings(const Json& settings, Fields& fields) {
  if (!settings.is_object()) return;
  for (const auto& [name, value] : settings.items()) {
    // Clients always choose a text encoder's last layer.
    const bool is_usual = name.ends_with("_stop_at_last_layers") && value == 1;
    if (name != "sd_model_checkpoint" && !is_usual && !is_off(value))
      fields.warn("the setting " + shown(name) + " is not used");
  }
}

}  // namespace

std::optional<bool> truth_of(std::string_view text) {
  const auto word = ascii_lower_case(text);
  for (const auto* const yes : {"true", "1", "yes", "on", "t", "y"})
    if (word == yes) return true;
  for (const auto* const no : {"false", "0", "no", "off", "f", "n"})
    if (word == no) return false;
  return {};
}

bool is_on(Fields& fields, const char* name, bool otherwise) {
  if (!fields.has(name)) return otherwise;
  const auto& value = fields.json().at(name);
  if (value.is_boolean()) return *fields.flag(name);
  if (!value.is_string()) return *fields.integer({name}, 0, 1) == 1;
  const auto truth = truth_of(value.get<std::string>());
  if (!truth)
    refuse(name, text_of("'", name, "' should be true or false, it is ",
                         json_line(value).substr(0, kLongestShown)));
  return *truth;
}

void refuse_missing_features(const Fields& fields) {
  for (const auto& [name, what, neutral] : kMissing)
    if (!is_off(value_of(fields, name), neutral))
      refuse(name, text_of("'", name, "' should be off or absent: there ", what, " here"));
  refuse_scripts(value_of(fields, "alwayson_scripts"));
}

void warn_of_unused_choices(Fields& fields) {
  warn_of_settings(value_of(fields, "override_settings"), fields);
  for (const auto& missing : kMissing) (void)fields.has(missing.field);  // off, or refused
  (void)fields.has("alwayson_scripts");
  for (const auto& name : fields.unread()) {
    const auto& value = fields.json().at(name);
    const auto* const unfollowed = std::ranges::find(kUnfollowed, name, &Unfollowed::field);
    const bool is_known = unfollowed != std::end(kUnfollowed);
    if (is_known && !is_default(value, unfollowed->defaults))
      fields.warn(text_of("'", name, "' is not used: there ", unfollowed->what, " here"));
    if (is_known || is_off(value) || std::ranges::count(kIdle, name) > 0) (void)fields.has(name);
  }
  fields.finish();
}

void read_web_ui_guidance(Fields& fields, const Backend& backend, Request& request) {
  const auto cfg = fields.number({"cfg_scale"});
  const auto distilled = fields.number({"distilled_cfg_scale"});
  const auto text = fields.text("negative_prompt", kLongestPrompt).value_or("");
  const auto negative = text.find_first_not_of(" \t\r\n") == text.npos ? "" : text;
  if (distilled && has_embedded_guidance(backend))
    request.guidance = distilled;
  else if (distilled)
    fields.warn(text_of("'distilled_cfg_scale' ", *distilled, " is not used: this model takes no ",
                        "guidance as a number"));
  if (cfg.value_or(1) < 1) return turn_off_true_guidance(*cfg, negative, backend, fields, request);
  const auto kind = backend.info.guidance_kind;
  if (kind == GuidanceKind::kTrue || kind == GuidanceKind::kEmbeddedOrTrue)
    return read_true_guidance(cfg, negative, backend, fields, request);
  if (cfg.value_or(1) > 1)
    fields.warn(text_of("'cfg_scale' ", *cfg, " is not used: this model has no true guidance"));
  if (!negative.empty()) fields.warn("the negative prompt is not used: this model has none here");
}

WebUiScales web_ui_scales(const Request& request, const Backend& backend) {
  const bool has_negative = request.negative_prompt.has_value();
  return braid::web_ui_scales(request.guidance.value_or(backend.info.guidance),
                              has_negative ? request.true_cfg : 1, kind_of_guidance(backend),
                              has_negative);
}

}  // namespace braid::serve
