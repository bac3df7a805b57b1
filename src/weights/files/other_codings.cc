#include "weights/files/other_codings.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/ascii.h"
#include "base/error.h"
#include "base/json.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// Endings of tensors that only one coding has; those that tell more come first.
struct CodedEnding {
  std::string_view ending, name;
};
constexpr auto kCodedEndings = std::to_array<CodedEnding>({
    {".wscales", "SVDQuant (nunchaku)"},
    {".qzeros", "GPTQ or AWQ"},
    {".qweight", "GPTQ, AWQ or SVDQuant"},
    {".weight_packed", "compressed-tensors"},
    {".weight._data", "quanto"},
    {".weight._data._data", "quanto"},
    {".weight_blocks", "gpt-oss' mxfp4"},
    {".quant_state.bitsandbytes__nf4", "bitsandbytes in 4 bits (nf4)"},
    {".quant_state.bitsandbytes__fp4", "bitsandbytes in 4 bits (fp4)"},
    {".weight.absmax", "bitsandbytes in 4 bits"},
    {".SCB", "bitsandbytes in 8 bits (int8)"},
    {"._weight_qdata", "torchao"},
    {".weight_qdata", "torchao"},
    {".W_q", "HQQ"},
    {".W_q_meta", "HQQ"},
});

// What a `quant_method` is called; methods whose files are read are not here.
struct MethodName {
  std::string_view method, name;
};
constexpr auto kMethodNames = std::to_array<MethodName>({
    {"bitsandbytes", "bitsandbytes"},
    {"bitsandbytes_4bit", "bitsandbytes in 4 bits"},
    {"bitsandbytes_8bit", "bitsandbytes in 8 bits"},
    {"gptq", "GPTQ"},
    {"awq", "AWQ"},
    {"auto-round", "AutoRound"},
    {"autoround", "AutoRound"},
    {"sdnq", "SDNQ"},
    {"torchao", "torchao"},
    {"hqq", "HQQ"},
    {"quanto", "quanto"},
    {"svdquant", "SVDQuant (nunchaku)"},
    {"nunchaku", "SVDQuant (nunchaku)"},
    {"nunchaku_lite", "SVDQuant (nunchaku)"},
    {"eetq", "EETQ"},
    {"aqlm", "AQLM"},
    {"vptq", "VPTQ"},
    {"higgs", "HIGGS"},
    {"spqr", "SpQR"},
    {"bitnet", "BitNet"},
    {"quark", "Quark"},
    {"fp_quant", "FP-Quant"},
});
// Their tensors decide: many of these files are read.
constexpr auto kReadMethods = std::to_array<std::string_view>(
    {"fp8", "fbgemm_fp8", "finegrained_fp8", "compressed-tensors", "modelopt", "mxfp4", "gguf"});

bool is_code(ElementType type) {
  return type == ElementType::kUint8 || type == ElementType::kInt8 || type == ElementType::kInt32 ||
         is_float8(type);
}

// The first ending of the table that any tensor has: the table begins with what tells most.
std::pair<const CodedEnding*, const std::string*> telling_ending(const StoredByName& tensors) {
  for (const auto& coding : kCodedEndings)
    for (const auto& [name, stored] : tensors)
      if (name.ends_with(coding.ending)) return {&coding, &name};
  return {nullptr, nullptr};
}

// A weight of bytes or floats of 8 bits; Braid's own int8 has a tensor of scales named like it.
const std::string* coded_weight_in(const StoredByName& tensors) {
  for (const auto& [name, stored] : tensors) {
    const bool is_weight = name.ends_with("weight") && is_code(stored.entry.type) && !stored.packed;
    if (is_weight && !tensors.contains(name + "_scale")) return &name;
  }
  return nullptr;
}

// SDNQ's tensors have common names: codes with a 'scale' beside them.
const std::string* sdnq_weight_in(const StoredByName& tensors) {
  constexpr std::string_view kWeight = ".weight";
  for (const auto& [name, stored] : tensors) {
    if (!name.ends_with(kWeight) || !is_code(stored.entry.type)) continue;
    const auto base = name.substr(0, name.size() - kWeight.size());
    if (tensors.contains(base + ".scale")) return &name;
  }
  return nullptr;
}

std::string text_at(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_string() ? it->get<std::string>() : std::string();
}

// " (nf4)", of what the method's own settings tell.
std::string kind_of(const Json& config) {
  const auto is = [&](const char* key, bool value) {
    const auto it = config.find(key);
    return it != config.end() && *it == value;
  };
  if (is("load_in_8bit", true)) return " (int8)";  // the type for 4 bits is there, too, unused
  for (const auto* const key : {"weights_dtype", "bnb_4bit_quant_type", "bits", "weights"}) {
    const auto it = config.find(key);
    if (it == config.end()) continue;
    if (std::string_view(key).starts_with("bnb_4bit") && is("load_in_4bit", false)) continue;
    if (it->is_string()) return " (" + it->get<std::string>() + ")";
    if (it->is_number_integer()) return text_of(" (", it->get<int>(), " bits)");
  }
  return "";
}

Json config_beside(const fs::path& source, const char* name) {
  const auto path = source.parent_path() / name;
  if (!is_there(path)) return {};
  try {
    auto json = read_json(path);
    return json.is_object() ? json : Json();
  } catch (const InputError&) {
    return {};  // reported where it is needed
  }
}

// The coding that a configuration names; empty if it names none, or one that may be read.
std::string coding_named_beside(const fs::path& source) {
  auto config = config_beside(source, "config.json");
  for (const auto* const key : {"quantization_config", "quant_config"})
    if (config.contains(key) && config[key].is_object()) {
      const auto own = config[key];
      config = own;
      break;
    }
  if (text_at(config, "quant_method").empty() && !config.contains("weight_quant_params"))
    config = config_beside(source, "quantization_config.json");
  if (!config.is_object()) return {};
  const auto method = ascii_lower_case(text_at(config, "quant_method"));
  if (method.empty()) return config.contains("weight_quant_params") ? "HQQ" : "";
  if (std::find(kReadMethods.begin(), kReadMethods.end(), method) != kReadMethods.end()) return {};
  const auto* const known = std::find_if(kMethodNames.begin(), kMethodNames.end(),
                                         [&](const auto& m) { return m.method == method; });
  return (known == kMethodNames.end() ? "'" + method + "'" : std::string(known->name)) +
         kind_of(config);
}

[[noreturn]] void refuse(const fs::path& source, std::string_view coding,
                         const std::string& tensor) {
  throw OtherCoding(text_of(source.string(), " is quantized by ", coding, ", as '", tensor,
                            "' tells, which Braid cannot read: ", kFilesToTake));
}

}  // namespace

void refuse_other_coding(const StoredByName& tensors, const fs::path& source) {
  const auto [ending, told_by] = telling_ending(tensors);
  const auto* const coded = told_by ? told_by : coded_weight_in(tensors);
  if (!coded) return;
  const auto named = coding_named_beside(source);
  if (!named.empty()) refuse(source, named, *coded);
  if (told_by) refuse(source, ending->name, *told_by);
  if (const auto* const weight = sdnq_weight_in(tensors)) refuse(source, "SDNQ", *weight);
}

std::string codes_without_scales(const StoredByName& tensors) {
  for (const auto& [name, stored] : tensors) {
    const auto type = stored.entry.type;
    const bool is_integer = type == ElementType::kInt8 || type == ElementType::kInt32;
    const bool is_code = is_integer && name.ends_with("weight") && !stored.packed &&
                         !stored.is_quantized() && stored.entry.shape.size() > 1;
    if (is_code && !tensors.contains(name + "_scale"))
      return text_of("tensor '", name, "' is stored as ", element_type_name(type),
                     " codes without a scale per row, '", name, "_scale': nothing can be drawn ",
                     "with it");
  }
  return {};
}

}  // namespace braid
