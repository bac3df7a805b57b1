// What Wan's authors call the layers of their autoencoder.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace braid {

using Renames = std::vector<std::pair<std::string, std::string>>;

inline const Renames kWansBlock = {{"norm1", "residual.0"},
                                   {"conv1", "residual.2"},
                                   {"norm2", "residual.3"},
                                   {"conv2", "residual.6"},
                                   {"conv_shortcut", "shortcut"}};
// What is around its levels.
inline const Renames kWansEnds = {{"post_quant_conv", "conv2"},
                                  {"quant_conv", "conv1"},
                                  {"conv_in", "conv1"},
                                  {"norm_out", "head.0"},
                                  {"conv_out", "head.2"},
                                  {"mid_block.resnets.0", "middle.0"},
                                  {"mid_block.resnets.1", "middle.2"},
                                  {"mid_block.attentions.0", "middle.1"}};

// Replaces the first of each old word in a name, one after the other.
inline void rename(std::string& name, const Renames& words) {
  for (const auto& [old, by] : words)
    if (const auto at = name.find(old); at != name.npos) name.replace(at, old.size(), by);
}

}  // namespace braid
