#include "models/joy/names.h"

namespace braid {
namespace {

// Those of the original release.
const std::vector<KeyRule> kDiffSynth = {
    {"double_blocks.*.attn.img_attn_qkv", {"double_blocks.*.img_attn_qkv"}},
    {"double_blocks.*.attn.img_attn_proj", {"double_blocks.*.img_attn_proj"}},
    {"double_blocks.*.attn.txt_attn_qkv", {"double_blocks.*.txt_attn_qkv"}},
    {"double_blocks.*.attn.txt_attn_proj", {"double_blocks.*.txt_attn_proj"}},
};

}  // namespace

AdapterNames joy_adapter_names() { return denoiser_adapter_names({Names{}, {kDiffSynth}}); }

}  // namespace braid
