// Processes large inputs tile by tile, blending the overlaps as diffusers does.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace braid {

struct Tiling {
  std::int64_t in_size;   // side of a tile of the input
  std::int64_t out_size;  // side of a tile's result; one of the two divides the other
};

// Cuts x [B C H W] into tiles that overlap by a quarter, rounded up to whole numbers of the smaller
// side, maps each and joins the results. Borders are cross-faded linearly, first vertically, then
// horizontally. GroupNorm sees one tile at a time, so the result differs slightly from the untiled
// one.
at::Tensor map_tiles(const at::Tensor& x, Tiling tiling,
                     const std::function<at::Tensor(const at::Tensor&)>& map);

// The tiles that map_tiles maps, in its order.
std::vector<at::Tensor> cut_tiles(const at::Tensor& x, Tiling tiling);

}  // namespace braid
