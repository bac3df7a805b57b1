// How files of adapters spell the layers of one part of a model.
#pragma once

#include <string>
#include <vector>

#include "weights/names.h"
#include "weights/sharding.h"

namespace braid {

struct AdapterNames {
  // What may stand before a module's name. A part that has the empty one among these owns all that
  // begins with no other part's.
  std::vector<std::string> prefixes = {};
  std::vector<Names> tables = {};  // each says how checkpoints, or trainers, spell our layers
};

// The usual prefixes of a denoiser.
AdapterNames denoiser_adapter_names(std::vector<Names> tables);

// A module that may change rows of one of our tensors.
struct AdapterTarget {
  std::string module;  // of the file, underscored
  std::string name;    // the same without the prefix, with its dots
  std::string part;    // the prefix as peft's configurations name the part: "transformer"
  Share rows;          // of our tensor
  Order order = Order::kAsStored;
};

// All that may change the layer `layer` with `num_rows` outputs.
std::vector<AdapterTarget> targets_of(const AdapterNames& names, const ShardingTable& shardings,
                                      const std::string& layer, std::int64_t num_rows);

// Whether a module of a file begins with one of `prefixes`, and with none of `others` that is
// longer.
bool owns(const std::vector<std::string>& prefixes, const std::vector<std::string>& others,
          const std::string& module);

// Underscored names under which a file may hold a tensor of ours whole.
std::vector<std::string> replacements_of(const AdapterNames& names, const std::string& path);

}  // namespace braid
