#include "weights/adapters/adapter_metadata.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/ascii.h"
#include "base/error.h"
#include "base/json.h"
#include "weights/files/safetensors_header.h"

namespace braid {
namespace {

constexpr const char* kPeftConfigs = "lora_adapter_metadata";  // diffusers' key

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
  require(is_finite, what, " should be a finite number, it is ", json_text(json));
  return json.get<double>();
}

bool says(const Json& fields, const std::string& field) {
  return fields.contains(field) && !fields[field].is_null();
}

PeftScaling::Pattern read_pattern(const Json& fields, const std::string& usual,
                                  const std::string& of_modules, const std::string& where) {
  PeftScaling::Pattern pattern;
  if (says(fields, usual)) pattern.usual = finite_number(fields[usual], where + "'" + usual + "'");
  if (!says(fields, of_modules)) return pattern;
  const auto what = where + "'" + of_modules + "'";
  require(fields[of_modules].is_object(), what, " should be an object, it is ",
          json_text(fields[of_modules]));
  for (const auto& [module, number] : fields[of_modules].items()) {
    check_pattern(module, what);
    pattern.of_modules[module] = finite_number(number, what + " of '" + module + "'");
  }
  return pattern;
}

// peft takes what these begin with out of the base's weights, again whenever it loads the adapter.
// True, false, "gaussian", "orthogonal" and "eva" leave the base as it is. KaSA leaves the smallest
// singular values out of it.
void check_beginning(const Json& fields, const std::string& where) {
  require(!says(fields, "kasa_config"), where,
          "'kasa_config' is of KaSA, which changes the base's ",
          "weights, too: merge it with peft's merge_and_unload()");
  if (!fields.contains("init_lora_weights") || !fields["init_lora_weights"].is_string()) return;
  const auto beginning = ascii_lower_case(fields["init_lora_weights"].get<std::string>());
  for (const auto* const changes_base : {"pissa", "olora", "corda", "loftq", "lora_ga"})
    require(
        !beginning.starts_with(changes_base), where, "'init_lora_weights' is '", beginning,
        "', which changes the base's weights, too: merge it with peft's merge_and_unload(), or ",
        "make a usual LoRA of it with save_pretrained(..., ",
        "path_initial_model_for_weight_conversion=...)");
}

// What peft does with the factors of a layer is not only their product with these. All other fields
// say how an adapter was trained, or what its tensors tell, too.
void check_variant(const Json& fields, const std::string& where) {
  struct Variant {
    const char *field, *does;
  };
  constexpr std::array kVariants = std::to_array<Variant>({
      {"layer_replication", "repeats layers of the base"},
      {"use_qalora", "is of QA-LoRA, whose factors see means of neighbouring inputs"},
      {"use_bdlora", "is of BD-LoRA, whose factors are parts of larger ones"},
      {"alora_invocation_tokens", "is of aLoRA, which changes the tokens behind these alone"},
      {"arrow_config", "is of Arrow, which chooses among adapters for each token"},
      {"trainable_token_indices", "replaces rows of the table of tokens"},
  });
  for (const auto& [field, does] : kVariants) {
    const bool is_set = says(fields, field) && fields[field] != false &&
                        !(fields[field].is_structured() && fields[field].empty());
    require(!is_set, where, "'", field, "' ", does, ": Braid cannot apply it");
  }
}

bool flag_of(const Json& fields, const std::string& field, const std::string& where) {
  if (!says(fields, field)) return false;
  const auto& value = fields[field];
  require(value.is_boolean(), where, "'", field, "' should be true or false, it is ",
          json_text(value));
  return value.get<bool>();
}

// `fields` are those of peft's LoraConfig, LoHaConfig or LoKrConfig.
PeftScaling scaling_of(const Json& fields, const std::string& where) {
  check_beginning(fields, where);
  check_variant(fields, where);
  PeftScaling scaling;
  const auto* const alpha = says(fields, "alpha") ? "alpha" : "lora_alpha";
  scaling.alpha = read_pattern(fields, alpha, "alpha_pattern", where);
  scaling.by_root_of_rank = flag_of(fields, "use_rslora", where);
  scaling.is_dora = flag_of(fields, "use_dora", where);
  if (!says(fields, "peft_type") || fields["peft_type"] != "LOKR") return scaling;
  scaling.lokr_rank = read_pattern(fields, "r", "rank_pattern", where);
  require(scaling.lokr_rank->usual > 0, where, "'r' should be positive, it is ",
          scaling.lokr_rank->usual);
  for (const auto& [module, rank] : scaling.lokr_rank->of_modules)
    require(rank > 0, where, "the rank of '", module, "' should be positive, it is ", rank);
  return scaling;
}

// Keys are "PART.FIELD", or "FIELD" where names have no prefix.
std::map<std::string, PeftScaling> scalings_of(const std::string& text, const std::string& source) {
  const auto where = source + ": " + kPeftConfigs + ": ";
  const auto json = parse_python_json(text, source + ": " + kPeftConfigs);
  require(json.is_object(), where, "it should be a JSON object");
  std::map<std::string, Json> parts;
  for (const auto& [key, value] : json.items()) {
    const auto dot = key.find('.');
    const auto part = dot == std::string::npos ? "" : key.substr(0, dot);
    parts[part][dot == std::string::npos ? key : key.substr(dot + 1)] = value;
  }
  std::map<std::string, PeftScaling> scalings;
  for (const auto& [part, fields] : parts) scalings[part] = scaling_of(fields, where);
  return scalings;
}

}  // namespace

double PeftScaling::Pattern::of(std::string_view module) const {
  const auto own = std::find_if(of_modules.begin(), of_modules.end(),
                                [&](const auto& entry) { return is_meant(entry.first, module); });
  return own == of_modules.end() ? usual : own->second;
}

double PeftScaling::factor(std::string_view module, std::int64_t rank) const {
  return alpha.of(module) / (by_root_of_rank ? std::sqrt(double(rank)) : double(rank));
}

double PeftScaling::factor_of_whole(std::string_view module) const {
  return lokr_rank ? alpha.of(module) / lokr_rank->of(module) : 1;
}

PeftScaling read_peft_config(const std::string& text, const std::string& source) {
  const auto json = parse_python_json(text, source);
  require(json.is_object(), source, " should hold a JSON object");
  return scaling_of(json, source + ": ");
}

std::string foreign_peft_type(const std::string& text, const std::string& source) {
  const auto json = parse_python_json(text, source);
  if (!json.is_object() || !says(json, "peft_type") || !json["peft_type"].is_string()) return {};
  const auto type = json["peft_type"].get<std::string>();
  return type == "LORA" || type == "LOHA" || type == "LOKR" ? "" : type;
}

AdapterMetadata read_adapter_metadata(std::span<const std::byte> file, const std::string& source) {
  AdapterMetadata metadata{.texts = safetensors_notes(file)};
  const auto peft = metadata.texts.find(kPeftConfigs);
  if (peft != metadata.texts.end()) metadata.scalings = scalings_of(peft->second, source);
  return metadata;
}

}  // namespace braid
