// Communicators of NCCL's that fail or never come to be.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <atomic>

#include "host_links.h"

namespace braid::nccl_test {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr int kRanks = 2;

void with_worlds(const std::function<void(ProcessWorld&)>& use,
                 std::chrono::milliseconds patience = 30s) {
  with_host_links({.ranks = kRanks, .patience = patience}, use);
}

Tensor on_device() { return on_no_device(); }

using Recorded = RecordedSum;
using NcclFails = WithFakeNccl;

TEST_F(NcclFails, TheLibraryThatIsLoadedIsTheOneThatIsTaken) {
  ASSERT_NE(fake_nccl().functions.send, nullptr);
  const auto loaded = loaded_nccl();  // in a build for GPUs, LibTorch's
  ASSERT_TRUE(loaded.has_value());
  int version = 0;
  EXPECT_EQ(loaded->get_version(&version), Nccl::kSuccess);
  EXPECT_EQ(device_link_version(), version);
  EXPECT_FALSE(nccl_in(::dlopen("libm.so.6", RTLD_NOW)).has_value());
}

// An abort after the second step waits for the graph, which its rank must not keep until the others
// have ended the run.
TEST_F(NcclFails, ACancelAfterARecordedStepEndsTheRunOnAllRanks) {
  with_worlds([](ProcessWorld& world) {
    Recorded graph;
    world.on_failed_run([&](int) { graph.forget(); });
    for (int time = 0; time < 3; ++time) {
      std::stop_source stop;
      EXPECT_THROW(world.run(
                       [&](const Group& g) {
                         graph.step(g);
                         graph.step(g);
                         if (g.rank() == 0) stop.request_stop();
                         while (true) g.barrier();
                       },
                       world.has_first_rank() ? stop.get_token() : std::stop_token()),
                   Cancelled);
      world.run([&](const Group& g) { graph.step(g); });
    }
  });
}

// The other rank has done its part when one fails; it keeps a graph as well.
TEST_F(NcclFails, ARankThatEndedWellDropsItsGraphToo) {
  with_worlds([](ProcessWorld& world) {
    Recorded graph;
    world.on_failed_run([&](int) { graph.forget(); });
    EXPECT_NE(failure_of([&] {
                world.run([&](const Group& g) {
                  graph.step(g);
                  if (g.rank() == 1) throw Error("out of paint");
                });
              }),
              "");
    world.run([&](const Group& g) { graph.step(g); });
  });
}

TEST_F(NcclFails, AGraphThatIsNeverDroppedLosesTheWorldInsteadOfHangingIt) {
  with_worlds(
      [](ProcessWorld& world) {
        Recorded graph;
        const auto fail = [&](const Group& g) {
          graph.step(g);
          throw Error("out of paint");
        };
        EXPECT_THAT(failure_of([&] { world.run(fail); }), HasSubstr("out of paint"));
        EXPECT_THAT(failure_of([&] { world.run([&](const Group& g) { graph.step(g); }); }),
                    HasSubstr("a recorded graph still uses it"));
        graph.forget();
      },
      300ms);
}

TEST_F(NcclFails, StartingEndsAfterAWhileWhateverTheLibraryDoes) {
  for (const auto start : {FakeNccl::kNeverReady, FakeNccl::kNeverReturns}) {
    fake_nccl().set_start(start);
    std::atomic<int> lost = 0;
    on_connected_ranks(kRanks, [&](int rank, auto sockets) {
      const auto failure = failure_of([&] {
        ProcessWorld(std::make_unique<SocketWire>(rank, std::move(sockets)), 20s,
                     {.make_link = [&](const Group& g) {
                       return LinkedDevices{.link = std::make_shared<HostLink>(g, 200ms)};
                     }});
      });
      EXPECT_THAT(failure, HasSubstr("connecting the devices"));
      EXPECT_THAT(failure, HasSubstr("NCCL_P2P_DISABLE=1"));
      ++lost;
    });
    EXPECT_EQ(lost, kRanks);
    fake_nccl().set_start(FakeNccl::kWell);
  }
}

// A rank that fails while another one still waits for it to connect.
TEST_F(NcclFails, StartingEndsWhenAnotherRankFails) {
  with_worlds([](ProcessWorld& world) {
    EXPECT_NE(failure_of([&] { world.run([](const Group&) { throw Error("out of paint"); }); }),
              "");
    std::stop_source stop;
    stop.request_stop();
    const auto reduce = [](const Group& g) { (void)g.all_reduce(on_device()); };
    EXPECT_THROW(world.run(reduce, world.has_first_rank() ? std::stop_token() : stop.get_token()),
                 Cancelled);
    world.run(reduce);
  });
}

TEST_F(NcclFails, ARefusalIsASentence) {
  fake_nccl().set_start(FakeNccl::kRefused);
  run_ranks({.size = 1}, [](const Group&) {
    const auto connect = [] { NcclCommunicator(fake_nccl().functions, at::kCPU).connect(Group()); };
    EXPECT_THAT(failure_of(connect), HasSubstr("ncclCommInitRankConfig): as asked"));
  });
}

// The thread that starts a communicator has no caller.
TEST_F(NcclFails, ADeviceThatCannotBeUsedIsTheCallersFailure) {
  run_ranks({.size = 1}, [](const Group&) {
    const at::Device no_device(at::kXLA, 0);
    const auto connect = [&] { NcclCommunicator(fake_nccl().functions, no_device).connect({}); };
    EXPECT_THAT(failure_of(connect), HasSubstr("xla"));
  });
}

// The peer never sends: an abort of another thread ends the wait, and frees nothing that is in use.
TEST_F(NcclFails, AnAbortEndsAnExchangeThatWaits) {
  for (int time = 0; time < 20; ++time)
    run_ranks({.size = kRanks}, [&](const Group& g) {
      NcclCommunicator communicator(fake_nccl().functions, at::kCPU);
      communicator.connect(g);
      const auto x = on_device();
      if (g.rank() == 0) {
        std::jthread aborter([&] {
          if (time % 2 == 1) std::this_thread::sleep_for(std::chrono::microseconds(100 * time));
          communicator.abort();
        });
        EXPECT_THAT(failure_of([&] {
                      while (true) communicator.exchange({}, {{1, x}}, nullptr);
                    }),
                    HasSubstr("the link between the devices has failed"));
      }
      g.barrier();
    });
}

TEST_F(NcclFails, AFailedRankEndsWhatAnotherOneWaitsForOnItsDevice) {
  with_worlds([](ProcessWorld& world) {
    EXPECT_THAT(failure_of([&] {
                  world.run([&](const Group& g) {
                    (void)g.all_reduce(on_device());
                    if (g.rank() == 1) throw Error("out of paint");
                    while (true) (void)g.all_reduce(on_device());
                  });
                }),
                HasSubstr("out of paint"));
  });
}

}  // namespace braid::nccl_test
