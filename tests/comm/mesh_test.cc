// The grid of ranks: which groups a rank belongs to.
#include "comm/mesh.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "comm/axis_traffic.h"
#include "comm/worlds.h"

namespace braid::mesh_test {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::int64_t> members(const Group& group, const Group& world) {
  const auto all = group.all_gather(at::full({1}, world.rank(), at::kLong), 0);
  return {all.data_ptr<std::int64_t>(), all.data_ptr<std::int64_t>() + all.numel()};
}

TEST(Mesh, PutsTensorParallelRanksNextToEachOther) {
  run_ranks({.size = 12}, [](const Group& world) {
    const auto mesh = make_mesh(world, {.ring = 3, .ulysses = 2, .tp = 2});
    const auto tp = members(mesh.tp, world), ulysses = members(mesh.ulysses, world),
               ring = members(mesh.ring, world), context = members(mesh.context, world);
    if (world.rank() != 7) return;
    EXPECT_THAT(tp, ElementsAre(6, 7));
    EXPECT_THAT(ulysses, ElementsAre(5, 7));
    EXPECT_THAT(ring, ElementsAre(3, 7, 11));
    EXPECT_THAT(context, ElementsAre(1, 3, 5, 7, 9, 11));
    EXPECT_EQ(mesh.cfg.size(), 1);
    EXPECT_EQ(mesh.context.rank(), 3);
  });
}

class Meshes : public testing::TestWithParam<Degrees> {};

// The definition says so: a rank's position along an axis is a digit of its number, tp the lowest.
// The members of its group share all other digits.
TEST_P(Meshes, HaveGroupsOfRanksThatDifferInOneAxisAlone) {
  const auto& d = GetParam();
  const std::vector<std::pair<std::string, int>> axes = {{"tp", d.tp},     {"ulysses", d.ulysses},
                                                         {"ring", d.ring}, {"pp", d.pp},
                                                         {"cfg", d.cfg},   {"dp", d.dp}};
  const auto digits = [&](std::int64_t rank) {
    std::map<std::string, std::int64_t> places;
    for (const auto& [axis, extent] : axes) {
      places[axis] = rank % extent;
      rank /= extent;
    }
    return places;
  };
  run_ranks({.size = d.product()}, [&](const Group& world) {
    const auto mesh = make_mesh(world, d);
    const std::map<std::string, std::pair<Group, std::vector<std::string>>> groups = {
        {"tp", {mesh.tp, {"tp"}}},
        {"ulysses", {mesh.ulysses, {"ulysses"}}},
        {"ring", {mesh.ring, {"ring"}}},
        {"pp", {mesh.pp, {"pp"}}},
        {"cfg", {mesh.cfg, {"cfg"}}},
        {"dp", {mesh.dp, {"dp"}}},
        {"context", {mesh.context, {"ulysses", "ring"}}},
        {"replica", {mesh.replica, {"tp", "ulysses", "ring", "pp", "cfg"}}}};
    const auto mine = digits(world.rank());
    for (const auto& [name, of] : groups) {
      const auto& [group, along] = of;
      std::vector<std::int64_t> want;
      for (std::int64_t rank = 0; rank < world.size(); ++rank) {
        auto theirs = digits(rank);
        for (const auto& axis : along) theirs[axis] = mine.at(axis);
        if (theirs == mine) want.push_back(rank);
      }
      EXPECT_EQ(members(group, world), want) << name << " of rank " << world.rank();
      EXPECT_EQ(want[std::size_t(group.rank())], world.rank()) << name;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, Meshes,
    testing::Values(Degrees{}, Degrees{.tp = 3}, Degrees{.dp = 2, .tp = 2},
                    Degrees{.cfg = 2, .ring = 2, .ulysses = 2}, Degrees{.pp = 2, .ring = 3},
                    Degrees{.dp = 2, .cfg = 2, .pp = 1, .ring = 2, .ulysses = 1, .tp = 2},
                    Degrees{.dp = 2, .cfg = 1, .pp = 2, .ring = 1, .ulysses = 3, .tp = 1}),
    [](const auto& info) {
      return "ranks" + std::to_string(info.param.product()) + "_" + std::to_string(info.index);
    });

TEST(Mesh, RefusesAProductThatIsNotTheWorldWithTheEquation) {
  EXPECT_THAT(
      failure_of([] {
        run_ranks({.size = 3},
                  [](const Group& world) { make_mesh(world, {.ulysses = 2, .tp = 2}); });
      }),
      HasSubstr("dp 1 x cfg 1 x pp 1 x ring 1 x ulysses 2 x tp 2 = 4, but there are 3 ranks"));
}

TEST(Mesh, RefusesADegreeOfNothing) {
  EXPECT_THAT(
      failure_of([] { run_ranks({}, [](const Group& world) { make_mesh(world, {.tp = 0}); }); }),
      HasSubstr("every degree of a layout should be at least 1"));
}

TEST(AxisTraffic, IsWhatCameBetweenTwoLooks) {
  run_ranks({.size = 4}, [](const Group& world) {
    const auto mesh = make_mesh(world, {.ring = 2, .tp = 2});
    (void)mesh.tp.all_reduce(at::zeros({8}));
    const auto before = traffic_of(mesh);
    (void)mesh.tp.all_reduce(at::zeros({2, 3}));
    (void)mesh.ring.ring_shift(at::zeros({5}, at::kByte))->wait();
    for (const auto& [axis, traffic] : traffic_between(before, traffic_of(mesh))) {
      EXPECT_EQ(traffic.all_reduces, axis == "tp") << axis;
      EXPECT_EQ(traffic.shifts, axis == "ring") << axis;
      EXPECT_EQ(traffic.bytes, axis == "tp" ? 24 : axis == "ring" ? 5 : 0) << axis;
    }
    EXPECT_THROW((void)traffic_between({}, before), Error);
  });
}

}  // namespace braid::mesh_test
