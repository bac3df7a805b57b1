#include "weights/adapters/adapter_keys.h"

#include <algorithm>
#include <array>
#include <optional>

#include "weights/files/denoiser_prefixes.h"

namespace braid {
namespace {

struct KeySuffix {
  std::string_view text;
  AdapterRole role;
  std::string_view kind = {};  // of an adapter that cannot be applied
};

// The longer one first where one ends with another.
constexpr std::array kKeySuffixes = std::to_array<KeySuffix>({
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
    {".lora_mid.weight", AdapterRole::kCore},
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
    {".lokr_t2", AdapterRole::kRightCore},
    {".hada_t1", AdapterRole::kFirstCore},
    {".hada_t2", AdapterRole::kSecondCore},
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
    {".lokr_t1", AdapterRole::kUnreadable, "LoKr with a Tucker decomposition of its first factor"},
    {".oft_blocks", AdapterRole::kUnreadable, "OFT"},
    {".oft_diag", AdapterRole::kUnreadable, "OFT"},
    {".oft_R", AdapterRole::kUnreadable, "OFT"},
    {".oft_R.weight", AdapterRole::kUnreadable, "OFT"},
    {".oft_r", AdapterRole::kUnreadable, "OFT"},
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
    {".lora_diag", AdapterRole::kUnreadable, "KaSA"},
    {".lora_embedding_A", AdapterRole::kUnreadable, "LoRA of an embedding"},
    {".lora_embedding_B", AdapterRole::kUnreadable, "LoRA of an embedding"},
    {".scalar", AdapterRole::kUnreadable, "LyCORIS with a scalar of its own"},
    {".rescale", AdapterRole::kUnreadable, "OFT"},
    {".reshape_weight", AdapterRole::kUnreadable, "LoRA of a reshaped layer"},
});

// Tensors that variants of LoRA add to a layer begin so. A part that is not known may change what
// the layer's other tensors mean.
constexpr std::string_view kPart = ".lora_";
constexpr std::string_view kUnknownPart = "LoRA with a part that is not known";

// These serve only training: VeLoRA's, MonteCLoRA's.
constexpr auto kOnlyTrained =
    std::to_array<std::string_view>({".lora_velora_", ".lora_monteclora_sampler."});

// peft may insert the adapter's own name, which may have dots, after these:
// "x.lora_A.my.adapter.weight", "x.hada_w1_a.default". sd-scripts numbers OFT's blocks.
constexpr auto kNamed = std::to_array<std::string_view>({".lora_A.",
                                                         ".lora_B.",
                                                         ".lora_magnitude_vector.",
                                                         ".lora_embedding_A.",
                                                         ".lora_embedding_B.",
                                                         ".hada_w1_a.",
                                                         ".hada_w1_b.",
                                                         ".hada_w2_a.",
                                                         ".hada_w2_b.",
                                                         ".hada_t1.",
                                                         ".hada_t2.",
                                                         ".lokr_w1.",
                                                         ".lokr_w1_a.",
                                                         ".lokr_w1_b.",
                                                         ".lokr_w2.",
                                                         ".lokr_w2_a.",
                                                         ".lokr_w2_b.",
                                                         ".lokr_t2.",
                                                         ".lora_E.",
                                                         ".lora_diag.",
                                                         ".oft_R.",
                                                         ".oft_r.",
                                                         ".oft_blocks.",
                                                         ".boft_R.",
                                                         ".boft_s.",
                                                         ".ia3_l.",
                                                         ".vera_lambda_b.",
                                                         ".vera_lambda_d."});

void erase_segment(std::string& name, std::string_view segment) {
  auto at = name.find(segment);
  while (at != std::string::npos) {
    const bool is_whole = at == 0 || name[at - 1] == '.';
    if (is_whole) name.erase(at, segment.size());
    at = name.find(segment, is_whole ? at : at + 1);
  }
}

std::string without_wrappers(std::string name) {
  for (const auto wrapper : kModuleWrappers) erase_segment(name, wrapper);
  erase_segment(name, "base_layer.");  // peft's, of trained biases
  return name;
}

std::string without_adapter_name(std::string_view name) {
  for (const auto part : kNamed) {
    const auto at = name.find(part);
    if (at == std::string_view::npos) continue;
    const auto begin = at + part.size() - 1;  // of the dot
    const auto last = name.substr(name.rfind('.'));
    const bool is_module = last == ".weight" || last == ".bias";
    return std::string(name.substr(0, begin)) + std::string(is_module ? last : "");
  }
  return std::string(name);
}

// Some files end modules' names in underscores.
std::string_view without_trailing(std::string_view module) {
  const auto last = module.find_last_not_of('_');
  return last == std::string_view::npos ? module : module.substr(0, last + 1);
}

// Layers of models are called `up` and `down`, too: Krea 2's `ff.up.weight` is none of an
// adapter's.
bool may_end_in(std::string_view name, const KeySuffix& suffix) {
  const bool is_bare = suffix.text == ".up.weight" || suffix.text == ".down.weight";
  return !is_bare || name.find("lora") != name.npos;
}

// nullptr if there is none.
const KeySuffix* known_suffix(std::string_view name) {
  const auto* const found =
      std::find_if(kKeySuffixes.begin(), kKeySuffixes.end(), [&](const KeySuffix& suffix) {
        return name.ends_with(suffix.text) && name.size() > suffix.text.size() &&
               may_end_in(name, suffix);
      });
  return found == kKeySuffixes.end() ? nullptr : found;
}

// The end of a name, from the dot that begins an adapter's part.
std::optional<KeySuffix> suffix_of(std::string_view name) {
  if (const auto* const known = known_suffix(name)) return *known;
  const auto at = name.find(kPart);
  if (at == name.npos || at == 0) return {};
  const auto part = name.substr(at);
  const bool is_harmless = std::any_of(kOnlyTrained.begin(), kOnlyTrained.end(),
                                       [&](auto begin) { return part.starts_with(begin); });
  if (is_harmless) return {};
  return KeySuffix{.text = part, .role = AdapterRole::kUnreadable, .kind = kUnknownPart};
}

}  // namespace

AdapterKey parse_adapter_key(std::string_view tensor) {
  const auto name = without_wrappers(std::string(tensor));
  const auto plain = without_adapter_name(name);
  const auto suffix = suffix_of(plain);
  if (!suffix) return {name, AdapterRole::kReplacement};
  const auto module = std::string_view(plain).substr(0, plain.size() - suffix->text.size());
  return {std::string(without_trailing(module)), suffix->role};
}

std::string_view unreadable_kind(std::string_view tensor) {
  const auto plain = without_adapter_name(without_wrappers(std::string(tensor)));
  const auto suffix = suffix_of(plain);
  return suffix ? suffix->kind : std::string_view();
}

bool is_surely_of_adapter(std::string_view tensor) {
  const auto kind = unreadable_kind(tensor);
  const auto is_unmistakable = [&](std::string_view part) {
    return tensor.find(part) != tensor.npos;
  };
  constexpr std::array parts = {"oft_", "lora_",       "lokr_",    "hada_",
                                "ia3_", "vera_lambda", "lycoris_", ".on_input"};
  return !kind.empty() && std::any_of(parts.begin(), parts.end(), is_unmistakable);
}

std::string underscored(std::string_view module) {
  std::string text(module);
  std::replace(text.begin(), text.end(), '.', '_');
  return text;
}

}  // namespace braid
