#include "comm/mesh.h"

#include "base/error.h"

namespace braid {
namespace {

// The axes, slowest first.
std::vector<int> extents_of(const Degrees& d) {
  return {d.dp, d.cfg, d.pp, d.ring, d.ulysses, d.tp};
}

// All groups along the axes [first, last) of the grid, each a list of ranks in order.
std::vector<std::vector<int>> groups_along(const std::vector<int>& extents, std::size_t first,
                                           std::size_t last) {
  int inner = 1, along = 1, world = 1;
  for (std::size_t a = 0; a < extents.size(); ++a) {
    world *= extents[a];
    if (a >= first && a < last) along *= extents[a];
    if (a >= last) inner *= extents[a];
  }
  std::vector<std::vector<int>> groups;
  for (int start = 0; start < world; ++start) {
    if (start / inner % along != 0) continue;
    std::vector<int> ranks;
    for (int i = 0; i < along; ++i) ranks.push_back(start + i * inner);
    groups.push_back(std::move(ranks));
  }
  return groups;
}

}  // namespace

std::string to_string(const Degrees& d) {
  return text_of("dp ", d.dp, " x cfg ", d.cfg, " x pp ", d.pp, " x ring ", d.ring, " x ulysses ",
                 d.ulysses, " x tp ", d.tp);
}

Mesh make_mesh(const Group& world, const Degrees& degrees) {
  const auto extents = extents_of(degrees);
  for (const int extent : extents)
    require(extent >= 1, "every degree of a layout should be at least 1: ", to_string(degrees));
  require(degrees.product() == world.size(), to_string(degrees), " = ", degrees.product(),
          ", but there are ", world.size(), " ranks");
  const auto along = [&](std::size_t first, std::size_t last) {
    Group mine;
    for (const auto& ranks : groups_along(extents, first, last)) {
      if (ranks.size() == 1) break;  // groups of one need no transport
      auto group = world.subgroup(ranks);
      if (group.size() > 1) mine = group;
    }
    return mine;
  };
  return {.world = world,
          .dp = along(0, 1),
          .cfg = along(1, 2),
          .pp = along(2, 3),
          .ring = along(3, 4),
          .ulysses = along(4, 5),
          .tp = along(5, 6),
          .context = along(3, 5),
          .replica = along(1, 6),
          .degrees = degrees};
}

}  // namespace braid
