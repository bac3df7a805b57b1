#include "image/web_ui_terms.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace braid {
namespace {

using Name = std::pair<std::string_view, std::string_view>;
constexpr std::string_view kCfg = "CFG scale", kDistilledCfg = "Distilled CFG Scale";

// Our names, and the web UI's.
constexpr std::array kNames = {Name("steps", "Steps"),
                               Name("guidance", kCfg),
                               Name("seed", "Seed"),
                               Name("size", "Size"),
                               Name("model", "Model"),
                               Name("strength", "Denoising strength"),
                               Name("mask_blur", "Mask blur"),
                               Name("sampler", "Sampler"),
                               Name("schedule", "Schedule type"),
                               Name("software", "Version")};
// What its line begins with: by the first one the line is known.
constexpr std::array<std::string_view, 5> kFirst = {"Steps", "Sampler", "Schedule type", kCfg,
                                                    kDistilledCfg};

std::string translated(std::string_view key, std::string_view Name::*from,
                       std::string_view Name::*to) {
  const auto* const it = std::ranges::find(kNames, key, from);
  return std::string(it == kNames.end() ? key : (*it).*to);
}

std::optional<std::string> value_in(const PngText& text, std::string_view key) {
  const auto it = std::ranges::find(text, key, &PngText::value_type::first);
  return it == text.end() ? std::nullopt : std::optional(it->second);
}

bool is_signature(const std::optional<std::string>& software) {
  return software && software->starts_with("braid ");
}

std::optional<double> number_in(const std::string& text) {
  double number = 0;
  const auto* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(number) : std::nullopt;
}

// In decimals, since 1.1 - 1 is not 0.1 in binary ones.
std::string decimals_of(double number) {
  constexpr int kDigits = 12;
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number,
                                 std::chars_format::general, kDigits);
  return {digits.data(), end.ptr};
}

// A text's guidance in our terms.
struct OwnTexts {
  std::optional<std::string> guidance, true_cfg;
};
// The same in those of the web UI.
struct WebUiTexts {
  std::optional<std::string> cfg, distilled;
};

OwnTexts own_texts(const WebUiTexts& texts, std::string_view kind) {
  if (!texts.cfg) return {};
  const auto cfg = number_in(*texts.cfg);
  if (kind == kTrueGuidanceFrom0)
    return {.guidance = cfg ? decimals_of(*cfg - 1) : texts.cfg, .true_cfg = {}};
  const bool is_beside = kind == kNoGuidance || texts.distilled;
  if (!is_beside) return {.guidance = texts.cfg, .true_cfg = {}};
  const bool is_on = cfg.value_or(1) > 1;
  return {.guidance = texts.distilled, .true_cfg = is_on ? texts.cfg : std::nullopt};
}

WebUiTexts web_ui_texts(const OwnTexts& texts, std::string_view kind, bool has_negative) {
  if (!texts.guidance) return {};
  const auto guidance = number_in(*texts.guidance);
  if (!guidance) return {.cfg = texts.guidance, .distilled = {}};
  const auto true_cfg = number_in(texts.true_cfg.value_or("1")).value_or(1);
  const auto scales = web_ui_scales(*guidance, true_cfg, kind, has_negative);
  return {
      .cfg = decimals_of(scales.cfg),
      .distilled = scales.distilled ? std::optional(decimals_of(*scales.distilled)) : std::nullopt};
}

// Braid 0.2 did not say it, but wrote `true_cfg` only beside embedded guidance, and a negative
// prompt without it only where guidance is true.
std::string kind_of(const PngText& text, bool has_negative) {
  if (auto kind = value_in(text, "guidance_kind")) return *std::move(kind);
  return has_negative && !value_in(text, "true_cfg") ? kTrueGuidance : kEmbeddedGuidance;
}

// A value in one table, by its name in the other.
std::string sampling_label(std::string_view key, const std::string& name) {
  const auto label = [&](const auto& table) {
    const auto it = std::ranges::find_if(table, [&](const auto& one) { return one.first == name; });
    return it == table.end() ? name : web_ui_label(it->second);
  };
  return key == "sampler" ? label(kSamplers) : key == "schedule" ? label(kSigmaSchedules) : name;
}

std::string name_of_label(std::string_view key, const std::string& label) {
  const auto named = [&](const auto& table) {
    for (const auto& [name, value] : table)
      if (web_ui_label(value) == label) return std::string(name);
    return label;
  };
  return key == "sampler" ? named(kSamplers) : key == "schedule" ? named(kSigmaSchedules) : label;
}

void sort_as_in_web_ui(PngText& settings) {
  const auto rank = [](const PngText::value_type& setting) {
    return std::ranges::find(kFirst, setting.first) - kFirst.begin();
  };
  std::ranges::stable_sort(settings, {}, rank);
}

PngText renamed(const PngText& text, std::string_view Name::*from, std::string_view Name::*to) {
  PngText out;
  for (const auto& [key, value] : text) out.emplace_back(translated(key, from, to), value);
  return out;
}

}  // namespace

std::string web_ui_label(Sampler sampler) {
  switch (sampler) {
    case Sampler::kEuler:
      return "Euler";
    case Sampler::kEulerAncestral:
      return "Euler a";
    case Sampler::kHeun:
      return "Heun";
    case Sampler::kDpm2:
      return "DPM2";
    case Sampler::kDpmpp2m:
      return "DPM++ 2M";
    case Sampler::kResMultistep:
      return "Res Multistep";
    case Sampler::kErSde:
      return "ER SDE";
    case Sampler::kLcm:
      break;
  }
  return "LCM";
}

std::string web_ui_label(SigmaSchedule schedule) {
  if (schedule == SigmaSchedule::kModel) return "Automatic";
  std::string label(sampling_name(kSigmaSchedules, schedule));
  label.front() = char(label.front() - 'a' + 'A');
  return label;
}

WebUiScales web_ui_scales(double guidance, double true_cfg, std::string_view kind,
                          bool has_negative) {
  if (kind == kTrueGuidance) return {.cfg = has_negative ? guidance : 1};
  if (kind == kTrueGuidanceFrom0) return {.cfg = has_negative ? guidance + 1 : 1};
  if (kind == kNoGuidance) return {.cfg = true_cfg};
  return {.cfg = true_cfg, .distilled = guidance};
}

bool is_of_braid(const PngText& text) { return is_signature(value_in(text, "software")); }

PngText in_web_ui_terms(const PngText& text) {
  const OwnTexts own{value_in(text, "guidance"), value_in(text, "true_cfg")};
  PngText out;
  if (!is_of_braid(text)) {
    out = renamed(text, &Name::first, &Name::second);
    sort_as_in_web_ui(out);
    return out;
  }
  const bool has_negative = value_in(text, "negative_prompt").has_value();
  const auto kind = kind_of(text, has_negative);
  const auto scales = web_ui_texts(own, kind, has_negative);
  const auto read_back = own_texts(scales, kind);
  for (const auto& [key, value] : text) {
    if (key == "true_cfg" && value == read_back.true_cfg) continue;
    if (key != "guidance") {
      out.emplace_back(translated(key, &Name::first, &Name::second), sampling_label(key, value));
      continue;
    }
    out.emplace_back(kCfg, *scales.cfg);
    if (scales.distilled) out.emplace_back(kDistilledCfg, *scales.distilled);
    if (value != read_back.guidance) out.emplace_back(key, value);
  }
  sort_as_in_web_ui(out);
  return out;
}

PngText in_own_terms(const PngText& settings) {
  if (!is_signature(value_in(settings, "Version")))
    return renamed(settings, &Name::second, &Name::first);
  const WebUiTexts scales{value_in(settings, kCfg), value_in(settings, kDistilledCfg)};
  const auto own = own_texts(scales, value_in(settings, "guidance_kind").value_or(""));
  const auto guidance = value_in(settings, "guidance");
  PngText out;
  for (const auto& [key, value] : settings) {
    if (scales.cfg && (key == kDistilledCfg || key == "guidance")) continue;
    if (key != kCfg) {
      const auto name = translated(key, &Name::second, &Name::first);
      out.emplace_back(name, name_of_label(name, value));
      continue;
    }
    if (own.true_cfg) out.emplace_back("true_cfg", *own.true_cfg);
    if (const auto& scale = guidance ? guidance : own.guidance)
      out.emplace_back("guidance", *scale);
  }
  return out;
}

}  // namespace braid
