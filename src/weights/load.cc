#include "weights/load.h"

#include <algorithm>

#include "base/error.h"
#include "weights/expected.h"

namespace braid {

std::vector<const StoredTensor*> Weights::Load::take(const std::string& path, Order& order) {
  const auto origins = origins_of(names, path);
  const auto there = [&](const std::string& name) { return checkpoint->find(name) != nullptr; };
  const auto origin = std::find_if(origins.begin(), origins.end(), [&](const Origin& o) {
    return std::all_of(o.tensors.begin(), o.tensors.end(), there);
  });
  if (origin == origins.end()) {
    const auto& names_ = origins.front().tensors;
    const auto missing = std::find_if_not(names_.begin(), names_.end(), there);
    throw InputError(text_of(checkpoint->source(), " has no tensor '", *missing, "'"));
  }
  order = origin->order;
  std::vector<const StoredTensor*> parts;
  for (const auto& name : origin->tensors) {
    check(used.insert(name).second, checkpoint->source(), ": tensor '", name, "' is used twice");
    parts.push_back(checkpoint->find(name));
  }
  return parts;
}

// What this rank holds of a tensor of the layer `layer`. Vectors of a row-parallel layer, its bias,
// are whole: they belong to the sum.
Wanted Weights::Load::wanted_of(const std::string& layer, at::IntArrayRef shape) const {
  const auto rows = shape.empty() ? 1 : shape[0];
  const auto& group = options.tensor_parallel;
  const auto* const sharding = find_sharding(shardings, layer);
  if (!sharding || group.size() == 1) return {.rows = {{.begin = 0, .count = rows}}, .columns = {}};
  const auto share = [&](std::int64_t total) {
    return shares_of(*sharding, total, group.rank(), group.size(), layer);
  };
  const bool by_rows = sharding->split == Split::kRows || sharding->split == Split::kRowsUnsummed;
  if (!by_rows) return {.rows = share(rows), .columns = {}};
  return {.rows = {{.begin = 0, .count = rows}},
          .columns = shape.size() < 2 ? std::vector<Share>() : share(shape[1])};
}

Quantize Weights::Load::form_of(const std::string& layer) const {
  const auto& dense = options.keep_dense;
  const bool stays = std::any_of(dense.begin(), dense.end(), [&](const std::string& pattern) {
    return matches(pattern, layer);
  });
  return stays ? Quantize::kNone : options.quantize;
}

// The scales that stand beside codes.
Weights::Load::Scales Weights::Load::scales_of(const std::vector<const StoredTensor*>& codes,
                                               const std::string& path) {
  Scales scales;
  scales.parts = take(path + "_scale", scales.order);
  std::int64_t rows = 0;
  for (const auto* part : codes) rows += part->entry.shape[0];
  check_floating(scales.parts, checkpoint->source());
  check_shape(scales.parts, {rows, 1}, checkpoint->source());
  return scales;
}

// Codes of version 2 may be multiplied by those of activations, as the load asks.
Recipe Weights::Load::recipe_of(const Excerpt& codes, const std::vector<Piece>& scales) const {
  const bool is_v2 = scales.front().stored->dtype() == at::kFloat;
  const bool is_dynamic = options.quantize == Quantize::kInt8Dynamic && is_v2;
  return recipe_of_codes(codes, scales,
                         is_dynamic ? Quantize::kInt8Dynamic
                         : is_v2    ? Quantize::kInt8
                                    : Quantize::kInt8V1);
}

}  // namespace braid
