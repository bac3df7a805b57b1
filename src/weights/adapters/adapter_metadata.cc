#include "weights/adapters/adapter_metadata.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace braid {
namespace {

constexpr const char* kMetadata = "__metadata__";              // safetensors' key of a file's texts
constexpr const char* kPeftConfigs = "lora_adapter_metadata";  // diffusers' key

constexpr double kPeftsAlpha = 8;  // if its configuration does not say

// A peft pattern is a regular expression that must match the end of a module's name. Trainers write
// only plain names.
void check_pattern(const std::string& pattern, const std::string& source) {
  const bool is_plain = pattern.find_first_of("\\*+?()[]{}|$") == std::string::npos;
  require(is_plain, source, ": the pattern '", pattern,
          "' should be a module's name, it is a regular expression");
}

bool is_meant(std::string_view pattern, std::string_view module) {
  if (pattern.starts_with('^')) return module == pattern.substr(1);
  return module == pattern || (module.size() > pattern.size() && module.ends_with(pattern) &&
                               module[module.size() - pattern.size() - 1] == '.');
}

double finite_number(const Json& json, const std::string& what) {
  const bool is_finite = json.is_number() && std::isfinite(json.get<double>());
  require(is_finite, what, " should be a finite number, it is ", json.dump());
  return json.get<double>();
}

void read_field(PeftScaling& scaling, const std::string& field, const Json& value,
                const std::string& where) {
  if (value.is_null()) return;
  if (field == "lora_alpha") scaling.alpha = finite_number(value, where + "'lora_alpha'");
  if (field == "use_rslora") {
    require(value.is_boolean(), where, "'use_rslora' should be true or false, it is ",
            value.dump());
    scaling.by_root_of_rank = value.get<bool>();
  }
  if (field != "alpha_pattern") return;
  require(value.is_object(), where, "'alpha_pattern' should be an object, it is ", value.dump());
  for (const auto& [pattern, alpha] : value.items()) {
    check_pattern(pattern, where + "'alpha_pattern'");
    scaling.alphas[pattern] = finite_number(alpha, where + "the alpha of '" + pattern + "'");
  }
}

// Keys are "PART.FIELD" with fields of peft's LoraConfig.
std::map<std::string, PeftScaling> scalings_of(const std::string& text, const std::string& source) {
  const auto where = source + ": " + kPeftConfigs + ": ";
  const auto json = parse_json(text, source + ": " + kPeftConfigs);
  require(json.is_object(), where, "it should be a JSON object");
  std::map<std::string, PeftScaling> scalings;
  for (const auto& [key, value] : json.items()) {
    const auto dot = key.find('.');
    if (dot != std::string::npos)
      read_field(scalings[key.substr(0, dot)], key.substr(dot + 1), value, where);
  }
  std::erase_if(scalings, [](const auto& of_part) {
    return of_part.second.alpha == 0 && of_part.second.alphas.empty();
  });
  return scalings;
}

// Requests wait for this, and to parse a header takes as long as to find all layers in it.
bool may_have_key(std::string_view json, std::string_view key) {
  const auto has = [&](std::string_view words) { return json.find(words) != json.npos; };
  return has(key) || has("\\");  // an escape may spell it, too
}

}  // namespace

double PeftScaling::factor(std::string_view module, std::int64_t rank) const {
  const auto own = std::find_if(alphas.begin(), alphas.end(),
                                [&](const auto& entry) { return is_meant(entry.first, module); });
  const double mine = own == alphas.end() ? alpha : own->second;
  return mine / (by_root_of_rank ? std::sqrt(double(rank)) : double(rank));
}

PeftScaling read_peft_config(const std::string& text, const std::string& source) {
  const auto json = parse_json(text, source);
  require(json.is_object(), source, " should hold a JSON object");
  PeftScaling scaling{.alpha = kPeftsAlpha};
  for (const auto& [field, value] : json.items()) read_field(scaling, field, value, source + ": ");
  return scaling;
}

AdapterMetadata read_adapter_metadata(std::span<const std::byte> file, const std::string& source) {
  std::uint64_t length = 0;  // little-endian
  for (int i = 0; i < 8; ++i) length |= std::uint64_t(file[std::size_t(i)]) << (8 * i);
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + 8, std::size_t(length));
  AdapterMetadata metadata;
  if (!may_have_key(text, kMetadata)) return metadata;
  const auto header = parse_json(text, source);
  if (!header.contains(kMetadata)) return metadata;
  const auto& said = header[kMetadata];
  require(said.is_object(), source, ": '__metadata__' should be an object");
  for (const auto& [key, value] : said.items())
    if (value.is_string()) metadata.texts[key] = value.get<std::string>();
  const auto peft = metadata.texts.find(kPeftConfigs);
  if (peft != metadata.texts.end()) metadata.scalings = scalings_of(peft->second, source);
  return metadata;
}

}  // namespace braid
