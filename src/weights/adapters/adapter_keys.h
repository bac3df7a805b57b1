// The names of tensors in files of adapters: the module they change, and what they are to it. Knows
// no tensors, so that it can be fuzzed alone.
#pragma once

#include <string>
#include <string_view>

namespace braid {

enum class AdapterRole {
  kDown,    // LoRA's A [rank in]
  kUp,      // LoRA's B [out rank]
  kUpBias,  // of B: joins the layer's bias
  kAlpha,
  kMagnitude,  // DoRA's, of each output
  // LoKr: the left and the right factor, each whole or a product
  kLeft,
  kLeftUp,
  kLeftDown,
  kRight,
  kRightUp,
  kRightDown,
  // LoHa: two products, multiplied element by element
  kFirstUp,
  kFirstDown,
  kSecondUp,
  kSecondDown,
  kDifference,  // is added as it is
  kBiasDifference,
  kReplacement,  // no role is named: takes the place of a tensor of the model
};

struct AdapterKey {
  std::string module;  // all of the name for a replacement
  AdapterRole role;
};

AdapterKey parse_adapter_key(std::string_view name);

// Module names as sd-scripts writes them, with underscores for dots. Other spellings are brought to
// this one too, as it does not say which underscores were dots.
std::string underscored(std::string_view module);

}  // namespace braid
