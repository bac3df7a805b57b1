// Sums that NCCL takes (Collectives::kNative), with the stand-in of fake_nccl.h.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <atomic>

#include "comm/mesh.h"
#include "comm/thread.h"
#include "host_links.h"

namespace braid::native_sums_test {

using namespace std::chrono_literals;
using testing::AnyOf, testing::HasSubstr, testing::IsEmpty;

using NativeSums = WithFakeNccl;

// Numbers that every dtype has, and all sums of three of them.
Tensor whole_numbers(int rank, at::ScalarType dtype) {
  return (at::arange(40) + 3 * rank).to(dtype);
}

TEST_F(NativeSums, AreExactWhereNumbersAre) {
  constexpr int kRanks = 3;
  run_ranks({.size = kRanks}, [](const Group& g) {
    NcclCommunicators communicators(fake_nccl().functions, at::kCPU);
    communicators.connect(g);
    const std::vector<int> all = {0, 1, 2};
    for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt, at::kLong,
                             at::kByte, at::kChar}) {
      ASSERT_TRUE(NcclCommunicator::can_sum(dtype)) << dtype;
      const auto x = whole_numbers(g.rank(), dtype), result = at::zeros_like(x);
      const auto y = whole_numbers(g.rank() + 1, dtype).narrow(0, 0, 5);
      const auto second = at::zeros_like(y);
      communicators.find(all)->all_reduce({{x, result}, {y, second}}, nullptr);
      EXPECT_TRUE(at::equal(result, g.all_reduce(x))) << dtype;
      EXPECT_TRUE(at::equal(second, g.all_reduce(y))) << dtype;
      EXPECT_TRUE(at::equal(x, whole_numbers(g.rank(), dtype))) << dtype;
    }
    EXPECT_FALSE(NcclCommunicator::can_sum(at::kBool));
    EXPECT_FALSE(NcclCommunicator::can_sum(at::kFloat8_e4m3fn));
  });
}

// The reason why they are asked for: they are rounded otherwise, and on all ranks alike.
TEST_F(NativeSums, DifferByRounding) {
  constexpr int kRanks = 4;
  run_ranks({.size = kRanks}, [](const Group& g) {
    NcclCommunicators communicators(fake_nccl().functions, at::kCPU);
    communicators.connect(g);
    const std::vector<int> all = {0, 1, 2, 3};
    const auto x = (at::arange(999) * (g.rank() + 1) / 7).to(at::kBFloat16);
    const auto result = at::empty_like(x), ordered = g.all_reduce(x);
    communicators.find(all)->all_reduce({{x, result}}, nullptr);
    EXPECT_FALSE(at::equal(result, ordered));
    EXPECT_TRUE(at::allclose(result, ordered, 1e-2));
    check_same(g, result, "sums");
  });
}

// A grid of 2 x 2: each rank sums with one other rank, then with another one, between messages.
TEST_F(NativeSums, AreOfSeveralGroupsAtOnce) {
  run_ranks({.size = 4}, [](const Group& g) {
    const auto mesh = make_mesh(g, {.ring = 2, .tp = 2});
    NcclCommunicators communicators(fake_nccl().functions, at::kCPU);
    const int rank = g.rank(), neighbour = rank ^ 1, over_there = rank ^ 2;
    const std::vector<int> tp = {std::min(rank, neighbour), std::max(rank, neighbour)};
    const std::vector<int> ring = {std::min(rank, over_there), std::max(rank, over_there)};
    for (int time = 0; time < 3; ++time) {
      communicators.connect(g);
      g.barrier();
      EXPECT_EQ(fake_nccl().num_communicators(), 4);
      g.barrier();
      EXPECT_EQ(communicators.find(tp), nullptr);
      EXPECT_EQ(communicators.find(std::vector{0, 1, 2, 3}), &communicators.of_world());
      communicators.connect({.hosts = mesh.tp, .ranks = tp});
      communicators.connect({.hosts = mesh.ring, .ranks = ring});
      const auto x = at::full({5}, 1 << rank), sum = at::zeros_like(x), got = at::zeros_like(x);
      for (int step = 0; step < 3; ++step) {
        communicators.find(tp)->all_reduce({{x, sum}}, nullptr);
        EXPECT_EQ(sum[4].item<int>(), (1 << rank) + (1 << neighbour));
        communicators.of_world().exchange({{(rank + 1) % 4, x}}, {{(rank + 3) % 4, got}}, nullptr);
        EXPECT_EQ(got[0].item<int>(), 1 << (rank + 3) % 4);
        communicators.find(ring)->all_reduce({{x, sum}}, nullptr);
        EXPECT_EQ(sum[4].item<int>(), (1 << rank) + (1 << over_there));
      }
      g.barrier();
      EXPECT_EQ(fake_nccl().num_communicators(), 4 * 3);
      g.barrier();
    }
  });
}

constexpr int kRanks = 3;
constexpr int kPair[] = {0, 1};  // of them

void with_worlds(const std::function<void(ProcessWorld&)>& use,
                 std::chrono::milliseconds patience = 30s) {
  with_host_links({.ranks = kRanks, .patience = patience, .collectives = Collectives::kNative},
                  use);
}

TEST_F(NativeSums, EndWhereARankFails) {
  with_worlds([](ProcessWorld& world) {
    Group pair;
    world.run([&](const Group& g) { pair = g.subgroup(kPair); });
    for (int time = 0; time < 5; ++time) {
      EXPECT_THAT(failure_of([&] {
                    world.run([&](const Group& g) {
                      if (time % 2 == 1) (void)pair.all_reduce(on_no_device());
                      if (g.rank() == time % kRanks) throw Error("out of paint");
                      while (true) (void)(g.rank() == 2 ? g : pair).all_reduce(on_no_device());
                    });
                  }),
                  HasSubstr("out of paint"));
      world.run([&](const Group& g) {
        (void)pair.all_reduce(on_no_device());
        (void)g.all_reduce(on_no_device());
      });
    }
  });
}

// The other member has agreed to a sum and then failed: an abort ends what waits on the device.
TEST_F(NativeSums, EndWithAnAbort) {
  for (int time = 0; time < 10; ++time)
    run_ranks({.size = kRanks}, [&](const Group& g) {
      NcclCommunicators communicators(fake_nccl().functions, at::kCPU, 3s);
      communicators.connect(g);
      const auto pair = g.subgroup(kPair);
      if (g.rank() < 2) communicators.connect({.hosts = pair, .ranks = kPair});
      if (g.rank() == 0) {
        std::jthread aborter([&] {
          std::this_thread::sleep_for(std::chrono::microseconds(100 * time));
          communicators.abort();
        });
        const auto x = at::ones({3}), result = at::empty_like(x);
        auto& communicator = *communicators.find(kPair);
        EXPECT_THAT(failure_of([&] {
                      communicator.all_reduce({{x, result}}, nullptr);
                    }),
                    HasSubstr("the link between the devices has failed"));
      }
      g.barrier();
    });
}

// Its communicators end only when the graphs of all ranks are gone.
TEST_F(NativeSums, OfAGraphAreDroppedWithIt) {
  with_worlds([](ProcessWorld& world) {
    RecordedSum graph;
    world.on_failed_run([&](int) { graph.forget(); });
    Group pair;
    world.run([&](const Group& g) { pair = g.subgroup(kPair); });
    for (int time = 0; time < 3; ++time) {
      EXPECT_THAT(failure_of([&] {
                    world.run([&](const Group& g) {
                      (void)pair.all_reduce(on_no_device());
                      if (g.rank() < 2) graph.step(pair);
                      g.barrier();
                      if (g.rank() == time) throw Error("out of paint");
                    });
                  }),
                  HasSubstr("out of paint"));
      world.run([&](const Group&) { (void)pair.all_reduce(on_no_device()); });
    }
  });
}

TEST_F(NativeSums, OfAGraphThatIsNeverDroppedLoseTheWorld) {
  with_worlds(
      [](ProcessWorld& world) {
        RecordedSum graph;
        EXPECT_THAT(failure_of([&] {
                      world.run([&](const Group& g) {
                        const auto pair = g.subgroup(kPair);
                        if (g.rank() < 2) graph.step(pair);
                        g.barrier();
                        throw Error("out of paint");
                      });
                    }),
                    HasSubstr("out of paint"));
        EXPECT_THAT(failure_of([&] { world.run([](const Group& g) { g.barrier(); }); }),
                    AnyOf(HasSubstr("a recorded graph still uses it"), HasSubstr("rank 2 failed")));
        graph.forget();
      },
      300ms);
}

// One rank fails while the other waits for it to connect.
TEST_F(NativeSums, AreNotWaitedForByAGroupThatNeverConnects) {
  with_worlds([](ProcessWorld& world) {
    for (int time = 0; time < 3; ++time) {
      EXPECT_THAT(failure_of([&] {
                    world.run([&](const Group& g) {
                      const auto pair = g.subgroup(kPair);
                      if (g.rank() == time % 2) throw Error("out of paint");
                      (void)pair.all_reduce(on_no_device());
                      g.barrier();
                    });
                  }),
                  HasSubstr("out of paint"));
      world.run([&](const Group& g) { (void)g.subgroup(kPair).all_reduce(on_no_device()); });
    }
  });
}

TEST_F(NativeSums, AreRefusedWithoutALink) {
  const auto threads = [](const WorldOptions& options) {
    return failure_of([&] { const ThreadWorld world(options); });
  };
  EXPECT_EQ(threads({.size = 2, .collectives = Collectives::kNative}),
            "native collectives need a GPU for each rank and NCCL or RCCL between them: rank 0 "
            "computes on a CPU");
  EXPECT_THAT(threads({.size = 1, .collectives = Collectives::kNative}), IsEmpty());

  on_connected_ranks(2, [](int rank, auto sockets) {
    const auto make = [&] {
      ProcessWorld(std::make_unique<SocketWire>(rank, std::move(sockets)), 20s,
                   {.collectives = Collectives::kNative});
    };
    if (rank == 0) {
      EXPECT_THROW(make(), InputError);
    } else {
      EXPECT_THAT(failure_of(make), HasSubstr("native collectives need a GPU"));
    }
  });
}

TEST_F(NativeSums, AreThoseOfAllRanksOrOfNone) {
  on_connected_ranks(2, [](int rank, auto sockets) {
    EXPECT_THAT(failure_of([&] {
                  ProcessWorld(
                      std::make_unique<SocketWire>(rank, std::move(sockets)), 20s,
                      {.collectives = rank == 1 ? Collectives::kNative : Collectives::kOrdered});
                }),
                HasSubstr("the ranks have different collectives (ordered or native)"));
  });
}

}  // namespace braid::native_sums_test
