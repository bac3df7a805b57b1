// Every collective, over every transport, dtype and memory layout (different on each rank), against
// sums and concatenations of the same values. `mpirun -n 3` of this program tests MPI.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/worlds.h"

namespace braid::collectives_test {

constexpr int kRanks = 3;

using Arrange = std::function<Tensor(const Tensor& dense)>;

struct Layout {
  const char* name;
  Arrange arrange;  // the same values in another memory layout
};

Tensor sliced(const Tensor& x) {
  auto wide = at::zeros({x.size(0), 2 * x.size(1), x.size(2), x.size(3)}, x.options());
  auto view = wide.slice(1, 0, {}, 2);
  view.copy_(x);
  return view;
}

Tensor permuted(const Tensor& x) {
  return x.permute({3, 1, 0, 2}).contiguous().permute({2, 1, 3, 0});
}

const std::vector<Layout> kLayouts = {
    {"dense", [](const Tensor& x) { return x.clone(); }},
    {"permuted", permuted},
    {"sliced", sliced},
    {"channels_last", [](const Tensor& x) { return x.contiguous(at::MemoryFormat::ChannelsLast); }},
};

// Small integers, exact in every dtype.
Tensor values_of(int rank, at::ScalarType dtype, at::IntArrayRef shape) {
  const auto count = c10::multiply_integers(shape);
  return ((at::arange(count, at::kLong) * (rank + 1) + rank) % 5).view(shape).to(dtype);
}

// Calls `op` on every rank, whose tensor is arranged by (rank + offset).
struct Case {
  Over over;
  at::ScalarType dtype;
  std::size_t offset;
};

class Collectives : public testing::TestWithParam<Case> {
 protected:
  Tensor mine(int rank, at::IntArrayRef shape = {2, 3, 4, 5}) const {
    const auto& layout = kLayouts[(std::size_t(rank) * GetParam().offset) % kLayouts.size()];
    return layout.arrange(values_of(rank, GetParam().dtype, shape));
  }
  Tensor sum() const {
    auto total = values_of(0, GetParam().dtype, {2, 3, 4, 5}).to(at::kLong);
    for (int r = 1; r < kRanks; ++r)
      total = total + values_of(r, GetParam().dtype, {2, 3, 4, 5}).to(at::kLong);
    return total.to(GetParam().dtype);
  }
  void run(const std::function<void(const Group&)>& body) const {
    run_over(GetParam().over, {.size = kRanks}, body);
  }
};

TEST_P(Collectives, AllReduceSums) {
  run([&](const Group& world) {
    const auto x = mine(world.rank());
    const auto before = world.traffic().all_reduces;  // a launcher's world has already done some
    EXPECT_TRUE(at::equal(world.all_reduce(x), sum()));
    EXPECT_TRUE(at::equal(x, values_of(world.rank(), GetParam().dtype, {2, 3, 4, 5})));
    EXPECT_EQ(world.traffic().all_reduces, before + 1);
  });
}

// One rank makes each element, of all ranks' parts in their order.
TEST_P(Collectives, AllReduceOfSeveralTensorsMakesWhatItIsTold) {
  const std::vector<std::vector<std::int64_t>> shapes = {{2, 3, 4, 5}, {0, 1, 2, 2}, {7, 3, 1, 2}};
  const auto number = [](const SumRun& run) { return std::int64_t(run.tensor) + 1; };
  run([&](const Group& world) {
    std::vector<Tensor> xs;
    for (const auto& shape : shapes) xs.push_back(mine(world.rank(), shape));
    const auto before = world.traffic();
    const auto got = world.all_reduce(
        xs, [&](const SumRun& run, std::span<const Tensor> parts, const Tensor& out) {
          ASSERT_EQ(std::ssize(parts), kRanks);
          out.fill_(number(run));  // 2^r times the part of rank r is added
          for (int r = 0; r < kRanks; ++r)
            for (int i = 0; i < 1 << r; ++i)
              GetParam().dtype == at::kBool ? out.logical_or_(parts[std::size_t(r)])
                                            : out.add_(parts[std::size_t(r)]);
        });
    EXPECT_EQ(world.traffic().all_reduces, before.all_reduces + 1);
    const auto bytes = c10::elementSize(GetParam().dtype) * (120 + 42);
    EXPECT_EQ(world.traffic().bytes - before.bytes, std::int64_t(bytes));
    ASSERT_EQ(got.size(), shapes.size());
    for (std::size_t t = 0; t < shapes.size(); ++t) {
      auto want = at::full(shapes[t], std::int64_t(t) + 1, at::kLong);
      for (int r = 0; r < kRanks; ++r)
        want.add_(values_of(r, GetParam().dtype, shapes[t]).to(at::kLong), 1 << r);
      EXPECT_TRUE(at::equal(got[t], want.to(GetParam().dtype))) << t;
    }
  });
}

TEST_P(Collectives, AllReduceInPlaceUpdatesTheCallersTensor) {
  run([&](const Group& world) {
    auto x = mine(world.rank());
    const auto alias = x;
    world.all_reduce_(x);
    EXPECT_TRUE(at::equal(alias, sum()));
  });
}

TEST_P(Collectives, AllGatherJoinsUnevenParts) {
  run([&](const Group& world) {
    const auto rank = world.rank();
    // rank 1 has none
    const auto got = world.all_gather(mine(rank).narrow(2, 0, rank == 1 ? 0 : rank + 1), 2);
    std::vector<Tensor> parts;
    for (int r = 0; r < kRanks; ++r)
      parts.push_back(
          values_of(r, GetParam().dtype, {2, 3, 4, 5}).narrow(2, 0, r == 1 ? 0 : r + 1));
    EXPECT_TRUE(at::equal(got, at::cat(parts, 2)));
  });
}

TEST_P(Collectives, AllToAllTradesParts) {
  run([&](const Group& world) {
    const auto parts_of = [&](const Tensor& x) {
      return std::vector<Tensor>{x.narrow(3, 0, 2), x.narrow(3, 2, 0), x.narrow(3, 2, 3)};
    };
    const auto got = world.all_to_all(parts_of(mine(world.rank())));
    for (int r = 0; r < kRanks; ++r) {
      const auto theirs = values_of(r, GetParam().dtype, {2, 3, 4, 5});
      EXPECT_TRUE(at::equal(got[std::size_t(r)], parts_of(theirs)[std::size_t(world.rank())]));
    }
  });
}

TEST_P(Collectives, AllToAllJoinsWhatItReceives) {
  run([&](const Group& world) {
    const auto parts_of = [&](const Tensor& x) {
      return std::vector<Tensor>{x.narrow(0, 0, 1), x.narrow(0, 0, 0), x.narrow(0, 1, 1)};
    };
    const auto got = world.all_to_all_joined(parts_of(mine(world.rank())));
    std::vector<Tensor> want;
    for (int r = 0; r < kRanks; ++r)
      want.push_back(
          parts_of(values_of(r, GetParam().dtype, {2, 3, 4, 5}))[std::size_t(world.rank())]);
    EXPECT_TRUE(at::equal(got.x, at::cat(want)));
    EXPECT_EQ(got.sizes, std::vector(std::size_t(kRanks), want.front().size(0)));
  });
}

TEST_P(Collectives, BroadcastGivesTheRootsTensor) {
  run([&](const Group& world) {
    const auto want = values_of(2, GetParam().dtype, {2, 3, 4, 5});
    EXPECT_TRUE(at::equal(world.broadcast(mine(world.rank()), 2), want));
    auto x = mine(world.rank());
    const auto alias = x;
    world.broadcast_(x, 2);
    EXPECT_TRUE(at::equal(alias, want));
  });
}

TEST_P(Collectives, RingShiftHandsOnToTheNextRank) {
  run([&](const Group& world) {
    auto x = mine(world.rank());
    const auto incoming = world.ring_shift(x);
    x.zero_();  // the sent tensor may be reused
    const int before = (world.rank() + kRanks - 1) % kRanks;
    EXPECT_TRUE(at::equal(incoming->wait(), values_of(before, GetParam().dtype, {2, 3, 4, 5})));
  });
}

TEST_P(Collectives, TensorsWithoutElementsAreFine) {
  run([&](const Group& world) {
    const auto none = mine(world.rank()).narrow(0, 0, 0);
    EXPECT_EQ(world.all_reduce(none).sizes(), none.sizes());
    EXPECT_EQ(world.all_gather(none, 0).sizes(), none.sizes());
    EXPECT_EQ(world.broadcast(none, 1).sizes(), none.sizes());
    EXPECT_EQ(world.ring_shift(none)->wait().sizes(), none.sizes());
  });
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto over : transports())
    for (const auto dtype :
         {at::kFloat, at::kBFloat16, at::kHalf, at::kLong, at::kInt, at::kByte, at::kBool})
      for (std::size_t offset = 0; offset < 3; ++offset) cases.push_back({over, dtype, offset});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(DtypesAndStrides, Collectives, testing::ValuesIn(all_cases()),
                         [](const auto& info) {
                           return text_of(name_of(info.param.over), "_", info.param.dtype, "_",
                                          info.param.offset);
                         });

class AllReduce : public testing::TestWithParam<Over> {};
INSTANTIATE_TEST_SUITE_P(Transports, AllReduce, testing::ValuesIn(transports()),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(AllReduce, RoundsBfloat16OnceAndNotAtEveryRank) {
  run_over(GetParam(), {.size = kRanks}, [](const Group& world) {
    // 256 + 1 is 256 in bfloat16; 256 + 1 + 1 is not
    const auto x = at::full({4}, world.rank() == 0 ? 256 : 1, at::kBFloat16);
    EXPECT_EQ(world.all_reduce(x)[3].item<float>(), at::full({}, 258, at::kBFloat16).item<float>());
  });
}

TEST_P(AllReduce, GivesIdenticalBytesOnEveryRankOverEveryTransport) {
  if (GetParam() == Over::kLauncher) return;  // other ranks are other processes
  const auto once = [](Over over) {
    std::vector<Tensor> results(4);
    run_over(over, {.size = 4}, [&](const Group& world) {
      const auto rank = world.rank();
      at::Generator generator = at::detail::createCPUGenerator(std::uint64_t(rank));
      results[std::size_t(rank)] =
          world.all_reduce(at::randn({1001}, generator, at::kFloat)).clone();
    });
    return results;
  };
  const auto first = once(Over::kThreads), second = once(GetParam());
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_TRUE(at::equal(first[r], first[0]));
    EXPECT_TRUE(at::equal(first[r], second[r]));
  }
}

TEST(Traffic, OfABroadcastIsItsRoots) {
  run_ranks({.size = 3}, [](const Group& world) {
    (void)world.broadcast(at::zeros({world.rank() == 1 ? 5 : 7}), 1);
    EXPECT_EQ(world.traffic(), (Traffic{.broadcasts = 1, .bytes = world.rank() == 1 ? 4 * 5 : 0}));
  });
}

TEST(InPlace, RefusesToGiveOneElementTwoValues) {
  run_ranks({.size = 2}, [](const Group& world) {
    auto same = at::full({1, 3}, world.rank()).expand({4, 3});
    world.all_reduce_(same);
    EXPECT_EQ(same.sum().item<float>(), 12);
    auto row = at::arange(4).unsqueeze(1).contiguous();
    auto x = world.rank() == 0 ? at::zeros({1, 3}, at::kLong).expand({4, 3})
                               : row.expand({4, 3}).clone();
    if (world.rank() == 0)
      EXPECT_THROW(world.all_reduce_(x), Error);
    else
      world.all_reduce_(x);
  });
}

TEST(OneRank, EveryCollectiveIsTheIdentity) {
  const Group one;
  auto x = at::arange(6).view({2, 3});
  EXPECT_TRUE(at::equal(one.all_reduce(x), x));
  EXPECT_TRUE(at::equal(one.all_gather(x, 1), x));
  EXPECT_TRUE(at::equal(one.all_to_all({x})[0], x));
  EXPECT_TRUE(at::equal(one.broadcast(x, 0), x));
  EXPECT_TRUE(at::equal(one.ring_shift(x)->wait(), x));
  one.all_reduce_(x);
  one.barrier();
}

TEST(Shares, TheFirstRanksHaveOneMore) {
  EXPECT_EQ(share_of(7, 0, 3).count, 3);
  EXPECT_EQ(share_of(7, 1, 3).begin, 3);
  EXPECT_EQ(share_of(7, 2, 3).begin, 5);
  EXPECT_EQ(share_of(2, 2, 3).count, 0);
}

}  // namespace braid::collectives_test
