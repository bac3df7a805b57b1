#include "models/vae/tiles.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace braid {
namespace {

using at::Tensor;

// Fades from the end of `before` into the start of `tile` along `dim`, in place.
void blend(const Tensor& before, Tensor& tile, std::int64_t extent, std::int64_t dim) {
  extent = std::min({before.size(dim), tile.size(dim), extent});
  if (extent == 0) return;
  std::vector<std::int64_t> along(std::size_t(tile.dim()), 1);
  along[std::size_t(dim)] = extent;
  // Each product is formed in float32 and rounded, like multiplying by a Python number.
  const auto weight =
      (at::arange(extent, tile.options().dtype(at::kDouble)) / double(extent)).view(along);
  const auto scaled = [&](const Tensor& t, const Tensor& by) {
    return (t.to(at::kFloat) * by.to(at::kFloat)).to(t.scalar_type());
  };
  auto start = tile.narrow(dim, 0, extent);
  const auto end = before.narrow(dim, before.size(dim) - extent, extent);
  start.copy_(scaled(end, 1 - weight) + scaled(start, weight));
}

Tensor part(const Tensor& t, std::int64_t dim, std::int64_t at, std::int64_t size) {
  return t.narrow(dim, at, std::min(size, t.size(dim) - at));
}

// Strides lead from one tile to the next. The smaller side is rounded, so that results lie where
// their tiles do.
struct Strides {
  std::int64_t in, out;
};
Strides strides_of(Tiling tiling) {
  const auto [in, out] = tiling;
  const auto stride = std::min(in, out) * 3 / 4;
  return {.in = stride * std::max<std::int64_t>(1, in / out),
          .out = stride * std::max<std::int64_t>(1, out / in)};
}

Tensor tile_at(const Tensor& x, Tiling tiling, std::int64_t i, std::int64_t j) {
  return part(part(x, 2, i, tiling.in_size), 3, j, tiling.in_size);
}

}  // namespace

std::vector<Tensor> cut_tiles(const Tensor& x, Tiling tiling) {
  const auto stride = strides_of(tiling).in;
  std::vector<Tensor> tiles;
  for (std::int64_t i = 0; i < x.size(2); i += stride)
    for (std::int64_t j = 0; j < x.size(3); j += stride) tiles.push_back(tile_at(x, tiling, i, j));
  return tiles;
}

Tensor map_tiles(const Tensor& x, Tiling tiling, const std::function<Tensor(const Tensor&)>& map) {
  const auto [stride, keep] = strides_of(tiling);
  const auto overlap = tiling.out_size - keep;
  std::vector<Tensor> above, rows;
  for (std::int64_t i = 0; i < x.size(2); i += stride) {
    std::vector<Tensor> row, kept;
    for (std::int64_t j = 0; j < x.size(3); j += stride) {
      auto tile = map(tile_at(x, tiling, i, j));
      if (i > 0) blend(above[row.size()], tile, overlap, 2);
      if (j > 0) blend(row.back(), tile, overlap, 3);
      kept.push_back(part(part(tile, 2, 0, keep), 3, 0, keep));
      row.push_back(tile);
    }
    rows.push_back(at::cat(kept, 3));
    above = std::move(row);
  }
  return at::cat(rows, 2);
}

}  // namespace braid
