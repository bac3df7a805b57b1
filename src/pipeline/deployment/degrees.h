// The degrees of a layout, and the world of ranks that they make.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <vector>

#include "braid/layout.h"
#include "comm/mesh.h"
#include "comm/world.h"

namespace braid {

// Throws InputError for a degree below 1 or beyond kMostRanks, and for shares that do not fit.
Degrees degrees_of(const Layout& layout);
bool has_degrees(const Layout& layout);  // other than 1

// Throws InputError for more than kMostRanks ranks, and for a deadline out of range.
WorldOptions world_of(const Layout& layout);
// How long a rank waits for the others: the layout's own deadline, or else the usual one of ranks
// on these devices.
std::chrono::milliseconds deadline_of(const Layout& layout, const std::vector<at::Device>& ranks);

// The layout of a request on `num_ranks` ranks: the one asked for, if any. Otherwise, with two
// guidance branches and an even number of ranks, the branches run on different ranks; the remaining
// factor becomes Ulysses.
Layout choose_layout(const Layout& asked, int num_ranks, int num_branches);

}  // namespace braid
