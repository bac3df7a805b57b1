// Kept keys over ranks, against one rank attending to all keys.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/thread.h"
#include "parallel/layout.h"

namespace braid::reference_kv_cache_test {

constexpr int kBlocks = 2;

struct Qkv {
  Tensor q, k, v;
};

Qkv random(std::uint64_t seed, std::int64_t batch, std::int64_t tokens) {
  const auto one = [&](std::uint64_t which) {
    return at::randn({batch, 6, tokens, 8}, at::detail::createCPUGenerator(3 * seed + which),
                     at::kFloat);
  };
  return {.q = one(0), .k = one(1), .v = one(2)};
}

// Make the kept keys of block `i`, and those of two pictures.
Qkv reference(int i) { return random(std::uint64_t(i), 1, 13); }
Qkv picture(int i) { return random(std::uint64_t(100 + i), 2, 9); }

Tensor attended(const Attend& attend, const Qkv& x, const Mesh& mesh) {
  const auto mine = [&](const Tensor& t) { return take_share(t, 2, mesh.context); };
  return mesh.context.all_gather(attend(mine(x.q), mine(x.k), mine(x.v)), 2);
}

Tensor with_all_keys(const Qkv& x, const Qkv& kept) {
  const auto joined = [](const Tensor& a, const Tensor& b) {
    return at::cat({a, b.expand({a.size(0), -1, -1, -1})}, 2);
  };
  return ops::attention(x.q, joined(x.k, kept.k), joined(x.v, kept.v));
}

// Every part of a model numbers its blocks from 0.
void evaluate(ReferenceKvCache& kept, const std::function<void(int block)>& run) {
  const auto part = kept.counted([&](const DenoiserInput&, const Tensor& state) {
    for (int i = 0; i < kBlocks; ++i) run(i);
    return state;
  });
  part({}, {});
}

class KeptKeysOverRanks : public testing::TestWithParam<std::tuple<Degrees, RingForm>> {};

TEST_P(KeptKeysOverRanks, AreAttendedToByAllPictures) {
  const auto& [degrees, form] = GetParam();
  run_ranks({.size = degrees.product()}, [&, degrees = degrees, form = form](const Group& world) {
    const auto mesh = make_mesh(world, degrees);
    ReferenceKvCache kept;
    const auto attend = attend_over(mesh, form, &kept);
    const auto expect_near = [](const Tensor& got, const Tensor& want) {
      EXPECT_LT((got - want).abs().max().item<double>(), 2e-6);
    };
    kept.set_use(ReferenceKvCache::Use::kKeep);
    evaluate(kept, [&](int i) {
      const auto x = reference(i);
      expect_near(attended(attend, x, mesh), ops::attention(x.q, x.k, x.v));
    });
    kept.set_use(ReferenceKvCache::Use::kAttend);
    for (int step = 0; step < 2; ++step)
      evaluate(kept, [&](int i) {
        expect_near(attended(attend, picture(i), mesh), with_all_keys(picture(i), reference(i)));
      });
    const auto all_bytes = world.all_reduce(at::full({1}, kept.bytes(), at::kLong));
    EXPECT_EQ(all_bytes.item<std::int64_t>(), kBlocks * 2 * 6 * 13 * 8 * 4);
    kept.set_use(ReferenceKvCache::Use::kNone);
    EXPECT_EQ(kept.bytes(), 0);
    evaluate(kept, [&](int i) {
      const auto x = picture(i);
      expect_near(attended(attend, x, mesh), ops::attention(x.q, x.k, x.v));
    });
  });
}

INSTANTIATE_TEST_SUITE_P(Layouts, KeptKeysOverRanks,
                         testing::Combine(testing::Values(Degrees{}, Degrees{.ring = 2},
                                                          Degrees{.ring = 3}, Degrees{.ulysses = 2},
                                                          Degrees{.ulysses = 4},
                                                          Degrees{.ring = 2, .ulysses = 2}),
                                          testing::Values(RingForm::kShift, RingForm::kGather)),
                         [](const auto& info) { return "layout" + std::to_string(info.index); });

// A graph serves only evaluations that attend to the same ones.
TEST(ReferenceKvCache, IsOfABranchAndItsPictureWhereItKeepsAPrefix) {
  using Whose = std::pair<int, int>;
  const StepInfo step{.branch = 1, .picture = 2};
  ReferenceKvCache kept;
  EXPECT_EQ(kept.whose(step), Whose(0, 0));
  kept.set_use(ReferenceKvCache::Use::kKeep, ReferenceKvCache::Of::kPrefix);
  EXPECT_EQ(kept.whose(step), Whose(1, 2));
  kept.set_use(ReferenceKvCache::Use::kAttend, ReferenceKvCache::Of::kPrefix);
  EXPECT_EQ(kept.whose(step), Whose(1, 2));
  kept.set_use(ReferenceKvCache::Use::kAttend, ReferenceKvCache::Of::kReferences);
  EXPECT_EQ(kept.whose(step), Whose(0, 0));
  kept.set_use(ReferenceKvCache::Use::kNone);
  EXPECT_EQ(kept.whose(step), Whose(0, 0));
}

// They were traded when they were kept.
TEST(ReferenceKvCache, AreNotTradedForHeadsAgain) {
  run_ranks({.size = 2}, [](const Group& world) {
    const auto mesh = make_mesh(world, {.ulysses = 2});
    ReferenceKvCache kept;
    const auto attend = attend_over(mesh, RingForm::kShift, &kept);
    const auto bytes_of_a_step = [&] {
      const auto before = mesh.ulysses.traffic().bytes;
      evaluate(kept, [&](int i) { attended(attend, picture(i), mesh); });
      return mesh.ulysses.traffic().bytes - before;
    };
    const auto without = bytes_of_a_step();
    kept.set_use(ReferenceKvCache::Use::kKeep);
    evaluate(kept, [&](int i) { attended(attend, reference(i), mesh); });
    kept.set_use(ReferenceKvCache::Use::kAttend);
    EXPECT_EQ(bytes_of_a_step(), without);
  });
}

}  // namespace braid::reference_kv_cache_test
