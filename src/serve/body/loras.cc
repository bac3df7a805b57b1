#include "serve/body/loras.h"

#include <algorithm>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/foreign_file.h"
#include "base/hub_cache.h"
#include "serve/api_error.h"

namespace braid::serve {
namespace {

constexpr std::size_t kMostLoras = 16, kLongestName = 200;
constexpr std::string_view kTags[] = {"<lora:", "<lyco:"};  // of one length

std::optional<double> scale_in(std::string_view text) {
  double number = 0;
  const auto* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  const bool is_number =
      parsed.ec == std::errc() && parsed.ptr == end && std::abs(number) <= FLT_MAX;
  return is_number ? std::optional(number) : std::nullopt;
}

// The web UI's scales: one for the text encoders and another for the transformer, by their places
// or by these names. One that is left out is 1, or that of the text encoders.
constexpr std::string_view kScaleNames[] = {"te=", "unet="};
struct Scales {
  std::optional<double> encoders = 1, transformer = {};
};

// Nothing if the text is no TE:UNET, te=TE:unet=UNET or the like.
std::optional<Scales> scales_in(std::string_view text) {
  Scales scales;
  std::optional<double>* const places[] = {&scales.encoders, &scales.transformer};
  std::size_t num_unnamed = 0;
  for (bool is_last = false; !is_last;) {
    const auto colon = text.find(':');
    is_last = colon == text.npos;
    auto part = text.substr(0, colon);
    text.remove_prefix(is_last ? text.size() : colon + 1);
    const auto* const named = std::ranges::find_if(
        kScaleNames, [&](std::string_view name) { return part.starts_with(name); });
    const bool has_name = named != std::end(kScaleNames);
    const auto place = has_name ? std::size_t(named - kScaleNames) : num_unnamed++;
    if (has_name) part.remove_prefix(named->size());
    const auto scale = scale_in(part);
    if (!scale || place >= std::size(places)) return {};
    *places[place] = scale;
  }
  return scales;
}

// Both scales have to be equal here.
double scale_of(std::string_view text) {
  const auto scales = scales_in(text);
  const auto scale = scales ? scales->encoders : std::nullopt;
  if (!scale || scales->transformer.value_or(*scale) != *scale)
    refuse("prompt", "a LoRA in the prompt should be <lora:NAME:SCALE>, its scale is '" +
                         std::string(text.substr(0, 100)) + "'");
  return *scale;
}

using LoraFiles = std::map<std::string, std::filesystem::path>;

LoraFiles files_of(const Backend& backend) {
  if (!backend.loras) return {};
  try {
    return backend.loras();
  } catch (const std::exception& failure) {
    throw LorasUnreadable(failure.what());
  }
}

// Nothing if it cannot be told: then none is known to be gone.
std::optional<LoraFiles> files_if_known(const Backend& backend) {
  try {
    return files_of(backend);
  } catch (const LorasUnreadable&) {
    return {};
  }
}

// As the engine says it of a file that is gone: such a sentence looks for it elsewhere, too.
bool says_that_it_is_not_there(std::string_view sentence, const std::string& path) {
  const bool is_of_absence =
      sentence.starts_with("there is no adapter at ") || sentence.starts_with("cannot read ");
  return is_of_absence && sentence.find(path) != sentence.npos;
}

NamedLora read_lora(Fields& fields) {
  const auto name = fields.text("name", kLongestName);
  if (!name) refuse("lora", "each 'lora' should have a 'name'");
  const auto scale = fields.number({"scale"}).value_or(1);
  fields.finish();
  return {*name, scale};
}

}  // namespace

std::vector<NamedLora> read_loras(Fields& fields) {
  std::vector<NamedLora> loras;
  try {
    for (auto& one : fields.list("lora", kMostLoras)) loras.push_back(read_lora(one));
  } catch (ApiError& error) {
    error.param = "lora";  // that is the field of the request
    throw;
  }
  return loras;
}

std::vector<NamedLora> take_loras(std::string& prompt) {
  std::vector<NamedLora> loras;
  const auto tag_behind = [&](std::size_t begin) {  // npos, the greatest, if there is none
    return std::min(prompt.find(kTags[0], begin), prompt.find(kTags[1], begin));
  };
  for (auto begin = tag_behind(0); begin != prompt.npos; begin = tag_behind(begin)) {
    const auto end = prompt.find('>', begin);
    if (end == prompt.npos) break;
    const auto tag = std::string_view(prompt).substr(begin, end - begin).substr(kTags[0].size());
    const auto colon = std::min(tag.find(':'), tag.size());
    const auto scale = tag.substr(std::min(colon + 1, tag.size()));
    loras.push_back({std::string(tag.substr(0, colon)), scale.empty() ? 1 : scale_of(scale)});
    if (loras.size() > kMostLoras)
      refuse("prompt", text_of("a prompt may name ", kMostLoras, " LoRAs"));
    prompt.erase(begin, end + 1 - begin);
  }
  return loras;
}

std::vector<std::string> lora_names(const Backend& backend) {
  std::vector<std::string> names;
  for (const auto& [name, file] : files_of(backend)) names.push_back(name);
  return names;
}

namespace {

SentenceOfLoras with_names(const std::string& sentence, const Request& request,
                           const Backend& backend) {
  SentenceOfLoras told{.text = without_quoted_begin(sentence)};
  auto adapters = request.adapters.value_or(backend.adapters);
  if (told.text.empty() || adapters.empty()) return told;
  const auto length = [](const Adapter& one) { return one.file.native().size(); };
  std::ranges::stable_sort(adapters, std::greater(), length);  // one path may end as another
  const auto listed = files_if_known(backend);
  const auto known = listed.value_or(LoraFiles());
  for (const auto& [file, scale] : adapters) {
    const auto path = file.string();
    const auto it = std::ranges::find(known, file, [](const auto& one) { return one.second; });
    const bool is_known = it != known.end();
    const bool is_requests =
        request.adapters &&
        (is_known || !std::ranges::count(backend.adapters, file, &Adapter::file));
    const auto name = is_known ? it->first : file.stem().string();
    if (listed && is_requests && !is_known && says_that_it_is_not_there(told.text, path))
      return {.text = "this server has no LoRA '" + name + "'", .names_one = true, .is_gone = true};
    if (const auto advice = not_in_hub(file); !advice.empty())  // for who runs the server
      if (const auto at = told.text.find(advice); at != told.text.npos)
        told.text.erase(at, advice.size());
    const auto words = "the LoRA '" + name + "'";
    for (auto at = told.text.find(path); at != told.text.npos && !path.empty();
         at = told.text.find(path, at + words.size())) {
      told.text.replace(at, path.size(), words);
      told.names_one |= is_requests;
    }
  }
  return told;
}

}  // namespace

// The thread that makes the pictures calls this behind a failure: another one must not end it.
SentenceOfLoras with_lora_names(const std::string& sentence, const Request& request,
                                const Backend& backend) {
  try {
    return with_names(sentence, request, backend);
  } catch (const std::exception& failure) {
    return {.text = text_of("something failed, and so did telling what: ", failure.what())};
  }
}

Json loras_json(const std::vector<Adapter>& adapters) {
  auto json = Json::array();
  for (const auto& [file, scale] : adapters)
    json.push_back({{"name", file.stem().string()}, {"scale", scale}});
  return json;
}

void apply_loras(const std::vector<NamedLora>& loras, const Backend& backend, Request& request) {
  if (loras.empty()) return;
  const auto known = files_of(backend);
  request.adapters = backend.adapters;
  for (const auto& [name, scale] : loras) {
    const auto file = known.find(name);
    if (file == known.end())
      throw ApiError(400, "this server has no LoRA '" + name.substr(0, kLongestName) + "'",
                     "lora_not_found", "lora");
    request.adapters->push_back({file->second, scale});
  }
}

}  // namespace braid::serve
