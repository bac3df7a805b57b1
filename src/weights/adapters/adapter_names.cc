#include "weights/adapters/adapter_names.h"

#include <algorithm>

#include "weights/adapters/adapter_keys.h"
#include "weights/files/denoiser_prefixes.h"
#include "weights/row_parts.h"

namespace braid {
namespace {

// "a.b.weight" belongs to module "a.b"; "a.norm.scale" belongs to none.
std::string module_of(const std::string& tensor) {
  const std::string_view ending = ".weight";
  return tensor.ends_with(ending) ? tensor.substr(0, tensor.size() - ending.size()) : "";
}

std::string part_of(const std::string& prefix) { return prefix.substr(0, prefix.find('.')); }

constexpr const char* kOfPeft = "base_model.model.";  // before or behind a model's own

// transformers' encoders have all of their modules in this one, and files may leave it out.
constexpr std::string_view kInEncoders = "text_model.";

// Returns the module's name within the part itself.
std::string name_in_part(const std::string& prefix, const std::string& name) {
  return prefix.ends_with(kInEncoders) ? std::string(kInEncoders) + name : name;
}

// The length of the longest matching prefix; -1: none matches.
std::int64_t longest_prefix(const std::string& module, const std::vector<std::string>& prefixes) {
  std::int64_t longest = -1;
  for (const auto& prefix : prefixes)
    if (module.starts_with(underscored(prefix)))
      longest = std::max(longest, std::int64_t(prefix.size()));
  return longest;
}

}  // namespace

AdapterNames denoiser_adapter_names(std::vector<Names> tables) {
  AdapterNames names{.prefixes = {"", kOfPeft, "pipe.dit.", "default.", "lora_unet_", "lora_unet__",
                                  "lora_transformer_", "lycoris_"},
                     .tables = std::move(tables)};
  for (const std::string_view view : kDenoiserMembers) {
    const std::string member(view);
    names.prefixes.insert(names.prefixes.end(), {member, kOfPeft + member, member + kOfPeft});
  }
  return names;
}

std::vector<AdapterTarget> targets_of(const AdapterNames& names, const ShardingTable& shardings,
                                      const std::string& layer, std::int64_t num_rows) {
  std::vector<AdapterTarget> targets;
  for (const auto& table : names.tables)
    for (const auto& origin : origins_of(table, layer + ".weight")) {
      const auto widths =
          row_parts(layer, num_rows, origin.tensors.size(), shardings, origin.parts);
      std::int64_t begin = 0;
      for (std::size_t i = 0; i < origin.tensors.size(); begin += widths[i++])
        for (const auto& prefix : names.prefixes) {
          const auto name = module_of(origin.tensors[i]);
          if (name.empty()) continue;
          targets.push_back({.module = underscored(prefix + name),
                             .name = name_in_part(prefix, name),
                             .part = part_of(prefix),
                             .rows = {.begin = begin, .count = widths[i]},
                             .order = origin.order});
        }
    }
  return targets;
}

std::string likeness_clause(const AdapterNames& names, const AdapterFile& file) {
  const auto likeness = names.likeness ? names.likeness(file) : "";
  return likeness.empty() ? "" : "; " + likeness;
}

bool owns(const std::vector<std::string>& prefixes, const std::vector<std::string>& others,
          const std::string& module) {
  return longest_prefix(module, prefixes) > longest_prefix(module, others);
}

std::vector<std::string> replacements_of(const AdapterNames& names, const std::string& path) {
  std::vector<std::string> found;
  for (const auto& table : names.tables)
    for (const auto& origin : origins_of(table, path))
      for (const auto& prefix : names.prefixes)
        if (origin.tensors.size() == 1) found.push_back(underscored(prefix + origin.tensors[0]));
  return found;
}

}  // namespace braid
