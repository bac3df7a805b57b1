#include "app/files/picture_text.h"

#include "app/flags/flag_groups.h"
#include "app/flags/memory_words.h"
#include "app/flags/option_names.h"
#include "app/words/readable.h"
#include "base/hub_cache.h"
#include "base/utf8.h"
#include "comm/mesh.h"
#include "image/web_ui_terms.h"
#include "pipeline/deployment/degrees.h"

namespace braid {

std::string adapters_text(const std::vector<Adapter>& adapters) {
  std::string text;
  for (const auto& [file, scale] : adapters)
    text += (text.empty() ? "" : ", ") + model_name(file) + "=" + decimal(scale);
  return text;
}

namespace {

void add_second(PngText& text, const char* key, const Prompt& p) {
  if (!p.second.empty() && p.second != p.text) text.emplace_back(key, p.second);
}

// True guidance: what it avoids and how.
void add_negative(PngText& text, const Settings& settings) {
  if (!settings.negative) return;
  const auto& negative = *settings.negative;
  text.emplace_back("negative_prompt", negative.text);
  add_second(text, "negative_prompt_2", negative);
  const auto& guidance = settings.true_guidance;
  if (settings.true_cfg > 1) text.emplace_back("true_cfg", decimal(settings.true_cfg));
  if (guidance.rescale > 0) text.emplace_back("guidance_rescale", decimal(guidance.rescale));
  if (guidance.norm_cap > 0) text.emplace_back("cfg_norm_cap", decimal(guidance.norm_cap));
  if (settings.cfg_normalize)
    text.emplace_back("cfg_normalize", *settings.cfg_normalize ? "on" : "off");
  if (guidance.until < 1) text.emplace_back("cfg_until", decimal(guidance.until));
}

// Without it no other program's scale could be made of the number.
const char* guidance_kind_name(const Settings& settings) {
  switch (settings.guidance_kind) {
    case GuidanceKind::kNone:
      return kNoGuidance;
    case GuidanceKind::kEmbedded:
    case GuidanceKind::kEmbeddedOrTrue:
      return kEmbeddedGuidance;
    case GuidanceKind::kTrue:
      break;
  }
  const bool is_from_0 = neutral_scale(settings.true_guidance.from) == 0;
  return is_from_0 ? kTrueGuidanceFrom0 : kTrueGuidance;
}

std::string list_of(const std::vector<double>& numbers) {
  std::string text;
  for (const double number : numbers) text += (text.empty() ? "" : ",") + decimal(number);
  return text;
}

// The model's files and adapters may name others: what was asked for instead is told, even if it is
// usual.
void add_sampling(PngText& text, const Sampling& s) {
  text.emplace_back("sampler", sampling_name(kSamplers, s.sampler.value_or(Sampler::kEuler)));
  if (s.schedule) text.emplace_back("schedule", sampling_name(kSigmaSchedules, *s.schedule));
  if (!s.sigmas.empty()) text.emplace_back("sigmas", list_of(s.sigmas));
  if (!s.base_sigmas.empty()) text.emplace_back("base_sigmas", list_of(s.base_sigmas));
  if (s.shift) text.emplace_back("shift", decimal(*s.shift));
}

// As a request says it: `padding_crop` puts a piece of that size back into a larger picture. A part
// that is returned has the size of its reference, and only a request without a size draws that.
void add_size(PngText& text, const Settings& settings) {
  if (!settings.returned)
    text.emplace_back(
        "size", text_of(settings.requested_size().width, "x", settings.requested_size().height));
  if (settings.layers() == 0 && settings.frames > 1)
    text.emplace_back("frames", std::to_string(settings.frames));
}

// A file of several pictures' latents has one for each, and --latents takes "FILE=2".
std::string latents_name(const std::string& file, const Picture& picture,
                         const Settings& settings) {
  if (settings.num_pictures() == 1) return file;
  return file + "=" + std::to_string(picture.seed - settings.seed + 1);
}

// Names and contents of the files, numbered where there may be several of a role.
void add_inputs(PngText& text, const Picture& picture, const Settings& settings,
                const std::vector<InputFile>& inputs) {
  int reference = 0, control = 0;
  for (const auto& input : inputs) {
    std::string number;
    if (input.role == "reference") number = "_" + std::to_string(++reference);
    if (input.role == "control" && !settings.followed.empty())
      number = "_" + std::to_string(++control);
    const auto name =
        input.role == "latents" ? latents_name(input.name, picture, settings) : input.name;
    text.emplace_back(input.role + number, name);
    text.emplace_back(input.role + number + "_sha256", input.sha256);
  }
}

// How ControlNets follow their pictures, where it differs from the default.
void add_followed(PngText& text, const Settings& settings, const PipelineOptions& options) {
  for (std::size_t i = 0; i < settings.followed.size(); ++i) {
    const auto& f = settings.followed[i];
    const auto control = "control_" + std::to_string(i + 1);
    text.emplace_back(control + "_net", model_name(options.controlnets[std::size_t(f.net)]));
    if (f.scale != 1) text.emplace_back(control + "_scale", decimal(f.scale));
    if (f.from > 0) text.emplace_back(control + "_from", decimal(f.from));
    if (f.to < 1) text.emplace_back(control + "_to", decimal(f.to));
    if (f.mode) text.emplace_back(control + "_mode", std::to_string(*f.mode));
  }
}

// Unequal shares and native sums. Equal splits are left out, although those of tokens and of
// weights round otherwise: a layout is the machine's, and a picture is to be drawn again on another
// one.
void add_layout(PngText& text, const Layout& layout) {
  const auto shares = to_string(layout.shares);
  const bool is_native = layout.collectives == Collectives::kNative;
  if (shares.empty() && !is_native) return;
  const auto degrees = degrees_of(layout);
  for (const auto& axis : kAxes)
    if (const int degree = degrees.*axis.degree; degree > 1)
      text.emplace_back(axis.name, std::to_string(degree));
  if (!shares.empty()) text.emplace_back("shares", shares);
  if (is_native) text.emplace_back("collectives", "native");
}

// Adds what weights are kept and computed in.
void add_numbers(PngText& text, const PipelineOptions& options) {
  const auto& memory = options.memory;
  if (options.dtype != Dtype::kAuto)
    text.emplace_back("dtype", choice_name(kDtypes, options.dtype));
  if (memory.quantize != Quantize::kNone)
    text.emplace_back("quantize", choice_name(kQuantizeForms, memory.quantize));
  if (memory.quantize_text != Quantize::kNone)
    text.emplace_back("quantize_text", choice_name(kQuantizeForms, memory.quantize_text));
  if (!memory.keep_dense.empty())
    text.emplace_back("quantize_skip", layers_text(memory.keep_dense));
}

// What was asked for instead of `auto` is told: adapters beside weights round otherwise than fused
// ones.
void add_adapters(PngText& text, const PipelineOptions& options) {
  if (options.adapters.empty()) return;
  text.emplace_back("lora", adapters_text(options.adapters));
  if (options.adapter_mode != AdapterMode::kAuto)
    text.emplace_back("lora_mode", choice_name(kAdapterModes, options.adapter_mode));
}

// Names without folders: where files lie is nobody else's business.
void add_files(PngText& text, const PipelineOptions& options) {
  text.emplace_back("model", model_name(options.model));
  if (!options.components.empty()) text.emplace_back("components", model_name(options.components));
  std::string encoders;
  for (const auto& file : options.text_encoder_files)
    encoders += (encoders.empty() ? "" : ", ") + file.filename().string();
  if (!encoders.empty()) text.emplace_back("text_encoder_file", encoders);
  if (!options.vae_file.empty())
    text.emplace_back("vae_file", options.vae_file.filename().string());
}

void add_cache(PngText& text, const CacheOptions& cache) {
  if (cache.mode == CacheMode::kOff) return;
  const CacheOptions usual;
  text.emplace_back("cache", words_of(cache));
  if (cache.most_in_a_row != usual.most_in_a_row)
    text.emplace_back("cache_limit", std::to_string(cache.most_in_a_row));
  if (cache.mode == CacheMode::kAccumulated && cache.polynomial != usual.polynomial)
    text.emplace_back("cache_polynomial", list_of(cache.polynomial));
}

}  // namespace

PngText text_of_picture(const Picture& picture, const Prompt& prompt, const Settings& settings,
                        const PipelineOptions& options, const std::vector<InputFile>& inputs) {
  PngText text = {{"prompt", prompt.text}};
  add_second(text, "prompt_2", prompt);
  add_negative(text, settings);
  text.emplace_back("seed", std::to_string(picture.seed));
  text.emplace_back("steps", std::to_string(settings.steps));
  add_sampling(text, settings.sampling);
  text.emplace_back("guidance", decimal(settings.guidance));
  text.emplace_back("guidance_kind", guidance_kind_name(settings));
  add_size(text, settings);
  if (settings.layers() > 0) {
    text.emplace_back("layers", std::to_string(settings.layers()));
    text.emplace_back("layer", std::to_string(picture.frame));
  }
  text.emplace_back("max_sequence_length", std::to_string(settings.max_sequence_length));
  add_inputs(text, picture, settings, inputs);
  add_followed(text, settings, options);
  for (std::size_t i = 0; i < settings.reference_scales.size(); ++i)
    if (const auto scale = settings.reference_scales[i]; scale != 1)
      text.emplace_back("reference_" + std::to_string(i + 1) + "_scale", decimal(scale));
  if (settings.reference_cache == ReferenceCache::kOff) text.emplace_back("reference_cache", "off");
  if (!settings.reference_scales.empty() && !options.redux.empty())
    text.emplace_back("redux", model_name(options.redux));
  if (settings.strength) text.emplace_back("strength", decimal(*settings.strength));
  if (settings.mask_blur > 0) text.emplace_back("mask_blur", decimal(settings.mask_blur));
  if (settings.padding_crop)
    text.emplace_back("padding_crop", std::to_string(*settings.padding_crop));
  if (settings.vae_tiling != VaeTiling::kAuto)
    text.emplace_back("vae_tiling", settings.vae_tiling == VaeTiling::kOn ? "on" : "off");
  add_layout(text, options.layout);
  add_numbers(text, options);
  add_cache(text, options.cache);
  add_adapters(text, options);
  add_files(text, options);
  text.emplace_back("software", "braid " + version());
  for (auto& [key, value] : text) value = as_valid_utf8(value);  // names of files are any bytes
  return text;
}

}  // namespace braid
