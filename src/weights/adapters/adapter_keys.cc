#include "weights/adapters/adapter_keys.h"

#include <algorithm>
#include <array>
#include <optional>

namespace braid {
namespace {

struct Ending {
  std::string_view text;
  AdapterRole role;
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
    // LoRAs of convolutions, Tucker's decomposition, OFT, BOFT, GLoRA, T-LoRA, IA3, VeRA,
    // embeddings
    {".lora_mid.weight", AdapterRole::kUnreadable},
    {".hada_t1", AdapterRole::kUnreadable},
    {".hada_t2", AdapterRole::kUnreadable},
    {".lokr_t1", AdapterRole::kUnreadable},
    {".lokr_t2", AdapterRole::kUnreadable},
    {".oft_blocks", AdapterRole::kUnreadable},
    {".oft_diag", AdapterRole::kUnreadable},
    {".oft_R", AdapterRole::kUnreadable},
    {".oft_R.weight", AdapterRole::kUnreadable},
    {".boft_R", AdapterRole::kUnreadable},
    {".boft_s", AdapterRole::kUnreadable},
    {".a1.weight", AdapterRole::kUnreadable},
    {".a2.weight", AdapterRole::kUnreadable},
    {".b1.weight", AdapterRole::kUnreadable},
    {".b2.weight", AdapterRole::kUnreadable},
    {".bm.weight", AdapterRole::kUnreadable},
    {".q_layer.weight", AdapterRole::kUnreadable},
    {".p_layer.weight", AdapterRole::kUnreadable},
    {".lambda_layer", AdapterRole::kUnreadable},
    {".on_input", AdapterRole::kUnreadable},
    {".ia3_l", AdapterRole::kUnreadable},
    {".vera_lambda_b", AdapterRole::kUnreadable},
    {".vera_lambda_d", AdapterRole::kUnreadable},
    {".lora_embedding_A", AdapterRole::kUnreadable},
    {".lora_embedding_B", AdapterRole::kUnreadable},
    {".scalar", AdapterRole::kUnreadable},
    {".rescale", AdapterRole::kUnreadable},
    {".reshape_weight", AdapterRole::kUnreadable},
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

std::optional<AdapterKey> key_by_ending(std::string_view name) {
  for (const auto& [ending, role] : kEndings)
    if (name.ends_with(ending) && name.size() > ending.size())
      return AdapterKey{std::string(name.substr(0, name.size() - ending.size())), role};
  return {};
}

}  // namespace

AdapterKey parse_adapter_key(std::string_view tensor) {
  const auto name = without_wrappers(std::string(tensor));
  if (auto key = key_by_ending(without_adapter_name(name))) return *std::move(key);
  return {name, AdapterRole::kReplacement};
}

std::string underscored(std::string_view module) {
  std::string text(module);
  std::replace(text.begin(), text.end(), '.', '_');
  return text;
}

}  // namespace braid
