// Metadata in the header of an adapter file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace braid {

// How peft scales the low-rank products of one part of a model.
struct PeftScaling {
  double alpha = 0;
  std::map<std::string, double> alphas = {};  // for modules whose names end in the key
  bool by_root_of_rank = false;               // rslora: alpha / sqrt(rank)

  double factor(std::string_view module, std::int64_t rank) const;
};

struct AdapterMetadata {
  std::map<std::string, std::string> texts = {};     // verbatim from the header
  std::map<std::string, PeftScaling> scalings = {};  // by the part's folder: "transformer"
};

// Takes a file accepted by parse_safetensors_header(). Throws InputError that begins with `source`
// if diffusers' entries there are malformed.
AdapterMetadata read_adapter_metadata(std::span<const std::byte> file, const std::string& source);

// `text` is adapter_config.json, which peft writes beside its files. Throws InputError.
PeftScaling read_peft_config(const std::string& text, const std::string& source);

}  // namespace braid
