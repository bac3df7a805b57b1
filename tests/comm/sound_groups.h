// Groups that must work, whatever happened to their world before.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "comm/worlds.h"

namespace braid {

inline constexpr int kRanks = 3;

inline const std::map<std::string, std::function<void(const Group&)>> kCollectives = {
    {"all_reduce", [](const Group& g) { (void)g.all_reduce(at::ones({5})); }},
    {"all_reduce_in_place",
     [](const Group& g) {
       auto x = at::ones({5});
       g.all_reduce_(x);
     }},
    {"all_gather", [](const Group& g) { (void)g.all_gather(at::ones({g.rank() + 1}), 0); }},
    {"all_to_all",
     [](const Group& g) { (void)g.all_to_all(std::vector(std::size_t(g.size()), at::ones({2}))); }},
    {"broadcast", [](const Group& g) { (void)g.broadcast(at::ones({4}), g.size() - 1); }},
    {"ring_shift", [](const Group& g) { (void)g.ring_shift(at::ones({4}))->wait(); }},
    {"barrier", [](const Group& g) { g.barrier(); }},
    {"await", [](const Group& g) { g.await(); }},
    {"check_same", [](const Group& g) { check_same(g, at::ones({4}), "ones"); }},
};

// Checks every collective of a group against the expected result.
inline void expect_sound(const Group& g) {
  const auto mine = at::arange(6).view({2, 3}) + 100 * g.rank();
  const auto of = [](int rank) { return at::arange(6).view({2, 3}) + 100 * rank; };
  auto sum = at::zeros_like(mine);
  std::vector<Tensor> all;
  for (int r = 0; r < g.size(); ++r) {
    sum += of(r);
    all.push_back(of(r));
  }
  EXPECT_TRUE(at::equal(g.all_reduce(mine), sum));
  EXPECT_TRUE(at::equal(g.all_gather(mine, 1), at::cat(all, 1)));
  EXPECT_TRUE(at::equal(g.broadcast(mine, g.size() - 1), of(g.size() - 1)));
  EXPECT_TRUE(at::equal(g.ring_shift(mine)->wait(), of((g.rank() + g.size() - 1) % g.size())));
  const auto traded = g.all_to_all(std::vector(std::size_t(g.size()), mine));
  EXPECT_TRUE(at::equal(at::cat(traded, 1), at::cat(all, 1)));
  g.barrier();
}

// Groups that live as long as a world, indexed by rank.
struct Groups {
  std::vector<Group> pairs = std::vector<Group>(kRanks);

  void make(const Group& world) {
    pairs[std::size_t(world.rank())] = world.subgroup(std::vector{0, 2});
  }
  const Group& pair_of(const Group& world) const { return pairs[std::size_t(world.rank())]; }
  void expect_all_sound(World& ranks) const {
    ranks.run([&](const Group& world) {
      expect_sound(world);
      expect_sound(pair_of(world));
      expect_sound(world);
    });
  }
};

class SoundGroups : public testing::TestWithParam<Over> {
 protected:
  // Creates a world with groups for the duration of `use`.
  void with_groups(const std::function<void(World&, Groups&)>& use,
                   std::chrono::milliseconds deadline = std::chrono::seconds(10)) const {
    with_worlds_over(GetParam(), {.size = kRanks, .deadline = deadline}, [&](World& world) {
      Groups groups;
      world.run([&](const Group& g) { groups.make(g); });
      use(world, groups);
    });
  }
};

}  // namespace braid
