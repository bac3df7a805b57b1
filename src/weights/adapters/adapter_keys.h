// Tensor names in adapter files: the module they change, and their role in it. Knows no tensors, so
// that it can be fuzzed alone.
#pragma once

#include <string>
#include <string_view>

namespace braid {

enum class AdapterRole {
  kDown,    // LoRA's A [rank in]
  kUp,      // LoRA's B [out rank]
  kUpBias,  // B's bias, added to the layer's
  kCore,    // between B and A of a convolution, in LyCORIS' Tucker form [rank rank window]
  kAlpha,
  kMagnitude,  // DoRA's, per output
  // LoKr: the left and the right factor, each whole or a product
  kLeft,
  kLeftUp,
  kLeftDown,
  kRight,
  kRightUp,
  kRightDown,
  kRightCore,  // between the two, for convolutions; the first is stored transposed then
  // LoHa: two products, multiplied element by element
  kFirstUp,
  kFirstDown,
  kSecondUp,
  kSecondDown,
  kFirstCore,
  kSecondCore,
  kDifference,  // added as it is
  kBiasDifference,
  kWhole,        // replaces the weight
  kUnreadable,   // of a kind of adapter that cannot be applied
  kReplacement,  // the name has no role: replaces a tensor of the model
};

struct AdapterKey {
  std::string module;  // the whole name for a replacement
  AdapterRole role;
};

AdapterKey parse_adapter_key(std::string_view name);

// The kind of adapter that a tensor of the role kUnreadable belongs to: "OFT".
std::string_view unreadable_kind(std::string_view tensor);
// Whether such a tensor's name is of adapters alone; no layer of a model is named like it.
bool is_surely_of_adapter(std::string_view tensor);

// Module names in sd-scripts' spelling, with underscores for dots. Other spellings are converted to
// it, since it does not tell which underscores were dots.
std::string underscored(std::string_view module);

}  // namespace braid
