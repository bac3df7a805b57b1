// The settings of a picture in the terms of AUTOMATIC1111's web UI and of Forge: names, samplers,
// and the two scales of guidance.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "braid/sampling.h"
#include "image/png.h"

namespace braid {

// "DPM++ 2M" and "Beta": what the web UI calls them.
std::string web_ui_label(Sampler sampler);
std::string web_ui_label(SigmaSchedule schedule);  // "Automatic" for the model's own

// Whether Braid wrote the text, which it signs. Other programs use some of the same keys with other
// meanings.
bool is_of_braid(const PngText& text);

// What a text's `guidance` is, as its `guidance_kind` says. Texts of Braid 0.2 do not say it.
inline constexpr const char* kEmbeddedGuidance = "embedded";      // Forge's distilled scale
inline constexpr const char* kTrueGuidance = "true";              // off at 1
inline constexpr const char* kTrueGuidanceFrom0 = "true_from_0";  // off at 0: one less than there
inline constexpr const char* kNoGuidance = "none";                // an unused number

// `CFG scale` is that of true guidance, at 1 off, `Distilled CFG Scale` the guidance that a
// transformer takes as a number.
struct WebUiScales {
  double cfg = 1;
  std::optional<double> distilled = {};
};
// Those of a picture with such a `guidance`. `true_cfg` is 1 where it is off; true guidance of the
// model's own runs exactly where there is a negative prompt.
WebUiScales web_ui_scales(double guidance, double true_cfg, std::string_view kind,
                          bool has_negative);

// Settings with the web UI's names, in its order. Only Braid's own texts, which it signs, have its
// samplers and scales; in others names alone are replaced.
PngText in_web_ui_terms(const PngText& text);

// The same settings in our terms. Braid 0.2 wrote `guidance` as "CFG scale" whatever it was, and
// samplers by our names.
PngText in_own_terms(const PngText& settings);

}  // namespace braid
