// What the scopes of one load share.
#pragma once

#include <algorithm>
#include <set>

#include "weights/recipe.h"
#include "weights/weights.h"

namespace braid {

struct Weights::Load {
  std::shared_ptr<const Checkpoint> checkpoint;
  Names names;
  LoadOptions options;
  ShardingTable shardings;
  std::set<std::string> used = {};
  std::shared_ptr<Scratch> scratch = std::make_shared<Scratch>();
  std::shared_ptr<const SyntheticValues> synthetic = {};

  std::vector<const StoredTensor*> take(const std::string& path, Order& order);
  Quantize form_of(const std::string& layer) const;
  struct Scales {
    std::vector<const StoredTensor*> parts = {};
    Order order = Order::kAsStored;
  };
  Scales scales_of(const std::vector<const StoredTensor*>& codes, const std::string& path);
  Recipe recipe_of(const Excerpt& codes, const std::vector<Piece>& scales) const;
  Wanted wanted_of(const std::string& layer, at::IntArrayRef shape) const;
  void has_read(const BytesRead& read) const {
    if (options.on_read) options.on_read(read);
    has_passed(read.all);
  }
  void has_passed(std::int64_t bytes) const {
    if (options.on_bytes) options.on_bytes(bytes);
  }
};

}  // namespace braid
