#include "models/zimage/names.h"

#include "weights/files/denoiser_prefixes.h"

namespace braid {
namespace {

const std::string kOnlyOneFile = "x_embedder.weight";
const std::string kOnlyDiffusers = "all_x_embedder.2-1.weight";

// `*.*` is a list of blocks and a block index. diffusers' first and last layers carry patch sizes
// in their names.
const std::vector<KeyRule> kOneFile = {
    {"cap_embedder.norm", {"cap_embedder.0"}},
    {"*.*.feed_forward.w13", {"*.*.feed_forward.w1", "*.*.feed_forward.w3"}},
};

const std::vector<KeyRule> kDiffusers = {
    {"x_embedder", {"all_x_embedder.2-1"}},
    {"final_layer", {"all_final_layer.2-1"}},
    {"cap_embedder.norm", {"cap_embedder.0"}},
    {"*.*.attention.qkv", {"*.*.attention.to_q", "*.*.attention.to_k", "*.*.attention.to_v"}},
    {"*.*.attention.q_norm", {"*.*.attention.norm_q"}},
    {"*.*.attention.k_norm", {"*.*.attention.norm_k"}},
    {"*.*.attention.out", {"*.*.attention.to_out.0"}},
    {"*.*.feed_forward.w13", {"*.*.feed_forward.w1", "*.*.feed_forward.w3"}},
};

// diffusers' names after fuse_qkv_projections(), and of trainers that drop the index of to_out.
const std::vector<KeyRule> kOtherDiffusers = {
    {"*.*.attention.qkv", {"*.*.attention.to_qkv"}},
    {"*.*.attention.out", {"*.*.attention.to_out"}},
};

// Published files hold the weight of a norm that has none.
Names in_one_file(const std::string& prefix) {
  return {.spellings = kOneFile, .prefix = prefix, .ignored = {prefix + "norm_final.weight"}};
}

bool has(const Checkpoint& checkpoint, const std::string& name) {
  return checkpoint.find(name) != nullptr;
}

}  // namespace

Names zimage_names(const Checkpoint& checkpoint) {
  for (const std::string prefix : kComfyPrefixes) {
    if (has(checkpoint, prefix + kOnlyOneFile)) return in_one_file(prefix);
    if (has(checkpoint, prefix + kOnlyDiffusers)) return {kDiffusers, prefix};
  }
  return zimage_names_of_diffusers();
}

Names zimage_names_of_diffusers() { return {kDiffusers}; }

Names zimage_names_in_one_file() { return in_one_file(""); }

AdapterNames zimage_adapter_names() {
  return denoiser_adapter_names({{kOneFile}, {kDiffusers}, {kOtherDiffusers}});
}

}  // namespace braid
