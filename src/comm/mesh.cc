#include "comm/mesh.h"

#include "base/error.h"

namespace braid {
namespace {

// Lists the degrees in the order of kAxes.
std::vector<int> extents_of(const Degrees& degrees) {
  std::vector<int> extents;
  for (const auto& axis : kAxes) extents.push_back(degrees.*axis.degree);
  return extents;
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

Shares Degrees::of_context() const {
  const auto outer = of_ring(), inner = of_ulysses();
  std::vector<int> products;
  for (int r = 0; r < ring; ++r)
    for (int u = 0; u < ulysses; ++u) products.push_back(outer.of(r) * inner.of(u));
  return {ring * ulysses, std::move(products)};
}

Shares Axis::of(const Degrees& grid) const {
  return {grid.*degree, shares ? grid.shares.*shares : std::vector<int>()};
}

void check_shares(const Degrees& degrees) {
  for (const auto& axis : kAxes) {
    if (!axis.shares) continue;
    const auto& shares = degrees.shares.*axis.shares;
    const int degree = degrees.*axis.degree;
    require(shares.empty() || int(shares.size()) == degree, axis.name, " has ", shares.size(),
            shares.size() == 1 ? " share" : " shares", ", but its degree is ", degree);
    for (const int share : shares)
      require(share >= 1 && share <= kMostShare, "the shares of ", axis.name,
              " should lie between 1 and ", kMostShare, ", one is ", share);
  }
}

std::string to_string(const Degrees& degrees) {
  std::string text;
  for (const auto& axis : kAxes)
    text += (text.empty() ? "" : " x ") + std::string(axis.name) + " " + in_words(axis.of(degrees));
  return text;
}

std::string to_string(const AxisShares& shares) {
  std::string text;
  for (const auto& axis : kAxes) {
    if (!axis.shares || (shares.*axis.shares).empty()) continue;
    text += (text.empty() ? "" : ",") + std::string(axis.name);
    auto separator = '=';
    for (const int share : shares.*axis.shares) {
      text += separator + std::to_string(share);
      separator = ':';
    }
  }
  return text;
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
          .dp = along(0, 1).with_shares(degrees.of_dp()),
          .cfg = along(1, 2),
          .pp = along(2, 3).with_shares(degrees.of_pp()),
          .ring = along(3, 4).with_shares(degrees.of_ring()),
          .ulysses = along(4, 5).with_shares(degrees.of_ulysses()),
          .tp = along(5, 6).with_shares(degrees.of_tp()),
          .context = along(3, 5).with_shares(degrees.of_context()),
          .replica = along(1, 6),
          .degrees = degrees};
}

}  // namespace braid
