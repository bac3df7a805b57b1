#include "weights/adapters/adapter_keys.h"

#include <algorithm>
#include <array>
#include <optional>

namespace braid {
namespace {

struct Ending {
  std::string_view text;
  AdapterRole role;
  std::string_view kind = {};  // of an adapter that cannot be applied
};

// The longer one first where one ends with another.
constexpr std::array kEndings = std::to_array<Ending>({
    {".lora_A.weight", AdapterRole::kDown},
    {".lora_B.weight", AdapterRole::kUp},
    {".lora_B.bias", AdapterRole::kUpBias},
    {".lora_A", AdapterRole::kDown},
    {".lora_B", AdapterRole::kUp},
    {".lora_linear_layer.down.weight", AdapterRole::kDown},
    {".lora_linear_layer.up.weight", AdapterRole::kUp},
    {".lora.down.weight", AdapterRole::kDown},
    {".lora.up.weight", AdapterRole::kUp},
    {".lora_down.weight", AdapterRole::kDown},
    {".lora_up.weight", AdapterRole::kUp},
    {".lora_up.bias", AdapterRole::kUpBias},
    {".down.weight", AdapterRole::kDown},
    {".up.weight", AdapterRole::kUp},
    {".alpha", AdapterRole::kAlpha},
    {".dora_scale", AdapterRole::kMagnitude},
    {".lora_magnitude_vector.weight", AdapterRole::kMagnitude},
    {".lora_magnitude_vector", AdapterRole::kMagnitude},
    {".lokr_w1", AdapterRole::kLeft},
    {".lokr_w1_a", AdapterRole::kLeftUp},
    {".lokr_w1_b", AdapterRole::kLeftDown},
    {".lokr_w2", AdapterRole::kRight},
    {".lokr_w2_a", AdapterRole::kRightUp},
    {".lokr_w2_b", AdapterRole::kRightDown},
    {".hada_w1_a", AdapterRole::kFirstUp},
    {".hada_w1_b", AdapterRole::kFirstDown},
    {".hada_w2_a", AdapterRole::kSecondUp},
    {".hada_w2_b", AdapterRole::kSecondDown},
    {".diff", AdapterRole::kDifference},
    {".diff_b", AdapterRole::kBiasDifference},
    {".w_norm", AdapterRole::kDifference},
    {".b_norm", AdapterRole::kBiasDifference},
    {".set_weight", AdapterRole::kWhole},
    {".lora_E", AdapterRole::kUnreadable, "AdaLoRA"},
    {".lora_mid.weight", AdapterRole::kUnreadable, "LoCon with a Tucker decomposition"},
    {".hada_t1", AdapterRole::kUnreadable, "LoHa with a Tucker decomposition"},
    {".hada_t2", AdapterRole::kUnreadable, "LoHa with a Tucker decomposition"},
    {".lokr_t1", AdapterRole::kUnreadable, "LoKr with a Tucker decomposition"},
    {".lokr_t2", AdapterRole::kUnreadable, "LoKr with a Tucker decomposition"},
    {".oft_blocks", AdapterRole::kUnreadable, "OFT"},
    {".oft_diag", AdapterRole::kUnreadable, "OFT"},
    {".oft_R", AdapterRole::kUnreadable, "OFT"},
    {".oft_R.weight", AdapterRole::kUnreadable, "OFT"},
    {".boft_R", AdapterRole::kUnreadable, "BOFT"},
    {".boft_s", AdapterRole::kUnreadable, "BOFT"},
    {".a1.weight", AdapterRole::kUnreadable, "GLoRA"},
    {".a2.weight", AdapterRole::kUnreadable, "GLoRA"},
    {".b1.weight", AdapterRole::kUnreadable, "GLoRA"},
    {".b2.weight", AdapterRole::kUnreadable, "GLoRA"},
    {".bm.weight", AdapterRole::kUnreadable, "GLoRA"},
    {".q_layer.weight", AdapterRole::kUnreadable, "T-LoRA"},
    {".p_layer.weight", AdapterRole::kUnreadable, "T-LoRA"},
    {".lambda_layer", AdapterRole::kUnreadable, "T-LoRA"},
    {".on_input", AdapterRole::kUnreadable, "IA3"},
    {".ia3_l", AdapterRole::kUnreadable, "IA3"},
    {".vera_lambda_b", AdapterRole::kUnreadable, "VeRA"},
    {".vera_lambda_d", AdapterRole::kUnreadable, "VeRA"},
    {".lora_embedding_A", AdapterRole::kUnreadable, "LoRA of an embedding"},
    {".lora_embedding_B", AdapterRole::kUnreadable, "LoRA of an embedding"},
    {".scalar", AdapterRole::kUnreadable, "LyCORIS with a scalar of its own"},
    {".rescale", AdapterRole::kUnreadable, "OFT"},
    {".reshape_weight", AdapterRole::kUnreadable, "LoRA of a reshaped layer"},
});

// peft may insert the adapter's own name after these: "x.lora_A.default.weight".
constexpr std::array<std::string_view, 3> kNamed = {".lora_A.", ".lora_B.",
                                                    ".lora_magnitude_vector."};

// Segments that torch.compile, FSDP, checkpointing, DDP and peft (trained biases of its layers)
// insert for their wrappers. No layer is named so.
constexpr std::array<std::string_view, 5> kWrappers = {
    "_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "module.", "base_layer."};

std::string without_wrappers(std::string name) {
  for (const auto wrapper : kWrappers) {
    auto at = name.find(wrapper);
    while (at != std::string::npos) {
      const bool is_segment = at == 0 || name[at - 1] == '.';
      if (is_segment) name.erase(at, wrapper.size());
      at = name.find(wrapper, is_segment ? at : at + 1);
    }
  }
  return name;
}

std::string without_adapter_name(std::string_view name) {
  for (const auto part : kNamed) {
    const auto at = name.rfind(part);
    if (at == std::string_view::npos) continue;
    const auto begin = at + part.size(), end = name.find('.', begin);
    if (end == std::string_view::npos || name.find('.', end + 1) != std::string_view::npos)
      continue;
    return std::string(name.substr(0, begin)) + std::string(name.substr(end + 1));
  }
  return std::string(name);
}

// nullptr if there is none.
const Ending* ending_of(std::string_view name) {
  const auto* const found =
      std::find_if(kEndings.begin(), kEndings.end(), [&](const Ending& ending) {
        return name.ends_with(ending.text) && name.size() > ending.text.size();
      });
  return found == kEndings.end() ? nullptr : found;
}

}  // namespace

AdapterKey parse_adapter_key(std::string_view tensor) {
  const auto name = without_wrappers(std::string(tensor));
  const auto plain = without_adapter_name(name);
  const auto* const ending = ending_of(plain);
  if (!ending) return {name, AdapterRole::kReplacement};
  return {plain.substr(0, plain.size() - ending->text.size()), ending->role};
}

std::string_view unreadable_kind(std::string_view tensor) {
  const auto* const ending = ending_of(tensor);
  return ending ? ending->kind : std::string_view();
}

std::string underscored(std::string_view module) {
  std::string text(module);
  std::replace(text.begin(), text.end(), '.', '_');
  return text;
}

}  // namespace braid
