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

// How peft scales what it adds to the weights of one part of a model.
struct PeftScaling {
  // Numbers for modules whose names end in a key, and for all others.
  struct Pattern {
    double usual = 8;  // peft's default for alpha and rank
    std::map<std::string, double> of_modules = {};

    double of(std::string_view module) const;
  };

  Pattern alpha = {};
  bool by_root_of_rank = false;           // rslora: alpha / sqrt(rank)
  bool is_dora = false;                   // layers without magnitudes have those of the base's rows
  std::optional<Pattern> lokr_rank = {};  // only for LoKr: whole factors do not tell it

  double factor(std::string_view module, std::int64_t rank) const;
  double factor_of_whole(std::string_view module) const;  // for LoKr's whole factors
};

struct AdapterMetadata {
  std::map<std::string, std::string> texts = {};  // verbatim from the header
  // Keys are the parts' folders ("transformer"), or "" if names have no prefix.
  std::map<std::string, PeftScaling> scalings = {};
  std::optional<PeftScaling> beside = {};  // of all other parts, from the file beside
};

// Takes a file accepted by parse_safetensors_header(). Throws InputError that begins with `source`
// if diffusers' entries there are malformed.
AdapterMetadata read_adapter_metadata(std::span<const std::byte> file, const std::string& source);

// `text` is adapter_config.json, which peft writes beside its files. Throws InputError.
PeftScaling read_peft_config(const std::string& text, const std::string& source);
// peft's own word for its kind ("BONE"); empty for LoRA, LoHa and LoKr. Throws InputError.
std::string foreign_peft_type(const std::string& text, const std::string& source);

}  // namespace braid
