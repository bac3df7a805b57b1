#include "pipeline/sampling/named_sampling.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "pipeline/request/limits.h"
#include "pipeline/sampling/grids.h"

namespace braid {
namespace {

// Names of other trainers' samplers and schedules may be in metadata, too.
enum class OtherNames { kRefused, kIgnored };

template <class Value, std::size_t kSize>
std::optional<Value> value_named(const JsonObject& json, const char* key,
                                 const std::array<std::pair<std::string_view, Value>, kSize>& table,
                                 OtherNames others) {
  if (!json.has(key)) return {};
  const auto asked = json.string_or(key, "");
  std::string names;
  for (const auto& [name, value] : table) {
    if (name == asked) return value;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  require(others == OtherNames::kIgnored, json.source(), ": '", key, "' should be one of ", names,
          ", it is '", asked, "'");
  return {};
}

std::vector<double> levels_in(const JsonObject& json, const Json& object, const char* key) {
  if (!json.has(key)) return {};
  const auto& list = object.at(key);
  const bool is_list =
      list.is_array() &&
      std::all_of(list.begin(), list.end(), [](const Json& one) { return one.is_number(); });
  require(is_list, json.source(), ": '", key, "' should be a list of numbers");
  return list.get<std::vector<double>>();
}

NamedSampling read(const Json& object, const std::string& source, OtherNames others) {
  const JsonObject json(object, source);
  NamedSampling named;
  auto& s = named.sampling;
  s.sampler = value_named(json, "sampler", kSamplers, others);
  s.schedule = value_named(json, "schedule", kSigmaSchedules, others);
  s.sigmas = levels_in(json, object, "sigmas");
  s.base_sigmas = levels_in(json, object, "base_sigmas");
  if (s.base_sigmas.empty()) s.base_sigmas = levels_in(json, object, "sample_sigmas");
  if (json.has("shift")) s.shift = json.number_or("shift", 1);
  if (json.has("num_inference_steps"))
    named.steps = int(json.integer_or("num_inference_steps", 1, 1, kMostSteps));
  try {
    (void)settle_sampling(s, {}, {}, 1, {}, [](const std::string&) {});
  } catch (const InputError& error) {
    throw InputError(text_of(source, ": ", error.what()));
  }
  return named;
}

// A list is JSON, or numbers between commas.
Json json_of_list(const std::string& text) {
  auto json = Json::parse(text, nullptr, false);
  if (!json.is_array()) json = Json::parse("[" + text + "]", nullptr, false);
  return json.is_discarded() ? Json(text) : json;
}

Json json_of_texts(const std::map<std::string, std::string>& texts) {
  Json object = Json::object();
  for (const auto& [key, text] : texts) {
    if (key == "sampler" || key == "schedule") object[key] = text;
    if (key == "sigmas" || key == "base_sigmas" || key == "sample_sigmas")
      object[key] = json_of_list(text);
    if (key != "shift" && key != "num_inference_steps") continue;
    if (auto number = Json::parse(text, nullptr, false); number.is_number())
      object[key] = std::move(number);
  }
  return object;
}

}  // namespace

NamedSampling read_named_sampling(const Json& object, const std::string& source) {
  return read(object, source, OtherNames::kRefused);
}

NamedSampling joined_sampling(const NamedSampling& first, const NamedSampling& otherwise) {
  return {.sampling = joined_sampling(first.sampling, otherwise.sampling),
          .steps = first.steps ? first.steps : otherwise.steps};
}

NamedSampling sampling_of_adapters(const std::vector<AppliedAdapter>& adapters) {
  NamedSampling all;
  for (const auto& [file, scale] : adapters) {
    if (scale == 0) continue;  // it is off
    all = joined_sampling(
        all, read(json_of_texts(file->metadata().texts), file->source(), OtherNames::kIgnored));
  }
  return all;
}

}  // namespace braid
