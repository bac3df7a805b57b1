// What the header of an adapter's file says beside its tensors.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace braid {

// How peft scales the products of one part of a model.
struct PeftScaling {
  double alpha = 0;
  std::map<std::string, double> alphas = {};  // of modules whose names end so
  bool by_root_of_rank = false;               // rslora: alpha / sqrt(rank)

  double factor(std::string_view module, std::int64_t rank) const;
};

struct AdapterMetadata {
  std::map<std::string, std::string> texts = {};     // as the header has them
  std::map<std::string, PeftScaling> scalings = {};  // by the part's folder: "transformer"
};

// Of a file that parse_safetensors_header() has accepted. Throws InputError that begins with
// `source` where what diffusers writes there is not as it should be.
AdapterMetadata read_adapter_metadata(std::span<const std::byte> file, const std::string& source);

// adapter_config.json, which peft writes beside its own files, as `text`. Throws InputError.
PeftScaling read_peft_config(const std::string& text, const std::string& source);

}  // namespace braid
