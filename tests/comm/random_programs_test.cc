// Programs of random collectives on tensors of random shapes, dtypes and strides, against one
// rank's results. Every other time, a random rank fails in the middle of one.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "comm/worlds.h"

namespace braid::random_programs_test {

using Random = std::mt19937;

std::int64_t draw(Random& random, std::int64_t below) {
  return std::int64_t(random() % std::uint32_t(below));
}

// The same numbers in a random memory layout.
Tensor rearranged(const Tensor& x, Random& random) {
  const auto dims = x.dim();
  auto result = x.clone();
  if (dims > 1 && draw(random, 2)) {
    const auto a = draw(random, dims), b = draw(random, dims);
    result = x.transpose(a, b).clone(at::MemoryFormat::Contiguous).transpose(a, b);
  }
  if (dims > 0 && draw(random, 2)) {
    const auto dim = draw(random, dims);
    auto sizes = x.sizes().vec();
    sizes[std::size_t(dim)] = 3 * sizes[std::size_t(dim)] + 1;
    auto wide = at::zeros(sizes, x.options()).slice(dim, 1, {}, 3);
    wide.copy_(result);
    result = wide;
  }
  return result;
}

constexpr at::ScalarType kDtypes[] = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong,
                                      at::kInt,   at::kShort,  at::kByte,     at::kChar, at::kBool};

// Small integers: their sums are exact in every dtype.
Tensor numbers(at::IntArrayRef shape, at::ScalarType dtype, Random& random) {
  auto x = at::empty(shape, at::kLong);
  auto* const data = x.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < x.numel(); ++i) data[i] = draw(random, 4);
  return x.to(dtype);
}

std::vector<std::int64_t> random_shape(Random& random, std::int64_t least_dims) {
  std::vector<std::int64_t> shape(std::size_t(least_dims + draw(random, 4)));
  for (auto& extent : shape) extent = draw(random, 8) == 0 ? 0 : 1 + draw(random, 7);
  return shape;
}

Tensor sum_of(const std::vector<Tensor>& all) {
  auto sum = all.front().to(at::kLong);
  for (std::size_t r = 1; r < all.size(); ++r) sum = sum + all[r].to(at::kLong);
  return sum.to(all.front().scalar_type());
}

enum class Kind { kAllReduce, kAllGather, kBroadcast, kShift, kAllReduceInPlace, kAllToAll };
constexpr int kKinds = 6;

struct Pair {
  Tensor got, want;
};

// The result of collective `kind` on `x`, and the expected one if rank r has all[r].
Pair call(const Group& g, Kind kind, Tensor x, const std::vector<Tensor>& all, std::int64_t dim,
          int root) {
  switch (kind) {
    case Kind::kAllReduce:
      return {g.all_reduce(x), sum_of(all)};
    case Kind::kAllReduceInPlace:
      g.all_reduce_(x);
      return {x, sum_of(all)};
    case Kind::kAllGather:
      return {g.all_gather(x, dim), at::cat(all, dim)};
    case Kind::kBroadcast:
      g.broadcast_(x, root);
      return {x, all[std::size_t(root)]};
    case Kind::kShift:
      return {g.ring_shift(x)->wait(), all[std::size_t((g.rank() + g.size() - 1) % g.size())]};
    case Kind::kAllToAll:
      break;
  }
  const auto times = [](const Tensor& part, int count) {
    return at::stack(std::vector(std::size_t(count), part));
  };
  std::vector<Tensor> parts, want;
  for (int r = 0; r < g.size(); ++r) {  // rank b gets b + 1 copies
    parts.push_back(times(x, r + 1));
    want.push_back(times(all[std::size_t(r)], g.rank() + 1));
  }
  return {at::stack(g.all_to_all(parts)), at::stack(want)};
}

// One collective of a random kind. Every rank draws the same values, for all ranks.
void check_next(const Group& g, Random& random) {
  const auto kind = Kind(draw(random, kKinds));
  const auto dtype = kDtypes[std::size_t(draw(random, std::ssize(kDtypes)))];
  auto shape = random_shape(random, kind == Kind::kAllGather ? 1 : 0);
  const auto dim = shape.empty() ? 0 : draw(random, std::ssize(shape));
  std::vector<Tensor> all;
  for (int r = 0; r < g.size(); ++r) {
    if (kind == Kind::kAllGather) shape[std::size_t(dim)] = draw(random, 4);
    if (kind == Kind::kShift) shape = random_shape(random, 0);  // shapes may differ
    all.push_back(numbers(shape, dtype, random));
  }
  const auto root = int(draw(random, g.size()));
  Random own{std::uint32_t(g.rank() + 1)};
  const auto x = rearranged(all[std::size_t(g.rank())], own);
  const auto [got, want] = call(g, kind, x, all, dim, root);
  EXPECT_EQ(got.scalar_type(), dtype);
  EXPECT_TRUE(at::equal(got, want)) << "collective " << int(kind) << " of " << dtype << " "
                                    << x.sizes() << " on rank " << g.rank() << " of " << g.size();
}

class RandomPrograms : public testing::TestWithParam<std::tuple<Over, int>> {};

TEST_P(RandomPrograms, GiveWhatOneRankComputesAlsoAfterFailures) {
  const auto [over, size] = GetParam();
  constexpr int kPrograms = 12, kLength = 12;
  with_worlds_over(over, {.size = size}, [&, size = size](World& world) {
    auto evens = std::vector<Group>(std::size_t(size));
    world.run([&](const Group& g) {
      std::vector<int> ranks;
      for (int r = 0; r < size; r += 2) ranks.push_back(r);
      evens[std::size_t(g.rank())] = g.subgroup(ranks);
    });
    for (int program = 0; program < kPrograms; ++program) {
      const bool fails = program % 2 == 0;
      const auto run = [&] {
        world.run([&](const Group& g) {
          Random random{std::uint32_t(program)};
          const auto culprit = draw(random, size), end = draw(random, kLength);
          for (int i = 0; i < kLength; ++i) {
            if (fails && i == end && g.rank() == culprit) throw Error("out of paint");
            check_next(g, random);
            Random of_group{std::uint32_t(program + i)};
            if (g.rank() % 2 == 0) check_next(evens[std::size_t(g.rank())], of_group);
          }
          if (fails) g.barrier();
        });
      };
      EXPECT_THAT(failure_of(run), testing::EndsWith(fails ? "out of paint" : ""));
    }
  });
}

std::vector<std::tuple<Over, int>> worlds_of_all_sizes() {
  if (const auto launch = read_launch()) return {{Over::kLauncher, launch->size}};
  std::vector<std::tuple<Over, int>> all;
  for (const auto over : {Over::kThreads, Over::kSockets})
    for (const int size : {1, 2, 3, 5}) all.emplace_back(over, size);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Worlds, RandomPrograms, testing::ValuesIn(worlds_of_all_sizes()),
                         [](const auto& info) {
                           return text_of(name_of(std::get<0>(info.param)), "_",
                                          std::get<1>(info.param));
                         });

}  // namespace braid::random_programs_test
