// Ranks that are threads, each with a GPU of its own: what they read of each other, where no link
// does it for them, and the link.
#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <gmock/gmock.h>

#include "comm/mesh.h"
#include "comm/thread.h"
#include "fake_crossings.h"
#include "fake_gpu.h"
#include "fake_order.h"
#include "on_gpu.h"

namespace braid::fake_crossings_test {

using fake_gpu::Crossings, fake_gpu::OrderOfWork;
using testing::HasSubstr, testing::IsEmpty, testing::Not;

constexpr int kRanks = 4;
constexpr std::int64_t kNumel = 4 * 1024;  // shares are whole multiples of 16

at::Device gpu(int rank) { return {at::kCUDA, at::DeviceIndex(rank)}; }
Tensor values(int rank) { return (at::arange(kNumel) * (rank + 1) / 3).to(at::kBFloat16); }

// Ranks that do not know their devices have no link.
void run_apart(const std::function<void(const Group&, const Tensor&)>& body) {
  run_ranks({.size = kRanks}, [&](const Group& g) {
    const c10::DeviceGuard on(gpu(g.rank()));
    body(g, values(g.rank()).to(gpu(g.rank())));
  });
}

// Each GPU sends and receives all the time: 2 (n - 1) / n of the bytes, in the dtype they have.
TEST(ReadsOfThreads, OverlapInASum) {
  const Crossings crossings;
  run_apart([](const Group& g, const Tensor& x) { (void)g.all_reduce(x); });
  EXPECT_EQ(crossings.bytes(), 2 * (kRanks - 1) * kNumel * 2);
  EXPECT_EQ(crossings.makespan(), 2 * (kRanks - 1) * kNumel / kRanks * 2);
}

TEST(ReadsOfThreads, OverlapInAGatherAndAnExchange) {
  {
    const Crossings crossings;
    run_apart([](const Group& g, const Tensor& x) { (void)g.all_gather(x, 0); });
    EXPECT_EQ(crossings.makespan(), (kRanks - 1) * kNumel * 2);
  }
  const Crossings crossings;
  run_apart([](const Group& g, const Tensor& x) { (void)g.all_to_all({x, x, x, x}); });
  EXPECT_EQ(crossings.makespan(), (kRanks - 1) * kNumel * 2);
}

// Streams of their own need events, both ways: what is read has been computed, and what was read is
// not overwritten before.
TEST(ReadsOfThreads, AreOrderedByEvents) {
  const OrderOfWork order;
  run_apart([](const Group& g, Tensor x) {
    for (int i = 0; i < 3; ++i) {
      x = x + 1;
      const auto sum = g.all_reduce(x);
      x.fill_(2);
      auto all = g.all_gather(x, 0);
      x.fill_(3);
      all = g.all_to_all({x, x, x, x}).front();
      x.fill_(4);
      all = g.broadcast(x, 2);
      x.fill_(5);
      const auto shifted = g.ring_shift(x);
      x.fill_(6);
      all = shifted->wait() + sum;
    }
  });
  EXPECT_THAT(order.complaints(), IsEmpty());
}

TEST(ReadsOfThreads, GiveTheBitsThatHostsGive) {
  Tensor want;
  run_ranks({.size = kRanks}, [&](const Group& g) {
    const auto sum = g.all_reduce(values(g.rank()));
    if (g.rank() == 1) want = sum;
  });
  run_apart([&](const Group& g, const Tensor& x) {
    EXPECT_TRUE(at::equal(g.all_reduce(x).cpu(), want)) << g.rank();
  });
}

WorldOptions on_gpus(std::vector<at::Device> devices) {
  return {.size = int(devices.size()), .devices = std::move(devices)};
}
WorldOptions natively_on_gpus(std::vector<at::Device> devices) {
  auto options = on_gpus(std::move(devices));
  options.collectives = Collectives::kNative;
  return options;
}

TEST(LinkOfThreads, IsUsedWhereEachHasAGpu) {
  ThreadWorld world(on_gpus({gpu(0), gpu(1), gpu(2)}));
  EXPECT_EQ(world.link().over, device_link_name());
  EXPECT_THAT(world.link().over, HasSubstr("NCCL"));
  Tensor want;
  run_ranks({.size = 3}, [&](const Group& g) {
    const auto sum = g.all_reduce(values(g.rank()));
    if (g.rank() == 0) want = sum;
  });
  for (int run = 0; run < 3; ++run) {
    world.run([&](const Group& g) {
      EXPECT_TRUE(g.stays_on_device());
      const auto x = values(g.rank());
      EXPECT_TRUE(at::equal(g.all_reduce(x.to(gpu(g.rank()))).cpu(), want));
      EXPECT_TRUE(at::equal(g.all_reduce(x), want)) << "on the hosts";
      const auto pair = g.subgroup(std::vector{0, 2});
      const auto sum = pair.all_reduce(at::ones({2}).to(gpu(g.rank())));
      EXPECT_EQ(sum.sum().item<double>(), g.rank() == 1 ? 2 : 4);
    });
    EXPECT_THAT(
        [&] {
          world.run([](const Group& g) {
            if (g.rank() == 1) throw Error("out of paint");
            while (true) (void)g.all_reduce(at::ones({2}).to(gpu(g.rank())));
          });
        },
        testing::ThrowsMessage<Error>(HasSubstr("out of paint")));
  }
}

TEST(LinkOfThreads, IsNotUsedWhereTwoShareAGpuOrOneHasNone) {
  const ThreadWorld shared(on_gpus({gpu(0), gpu(1), gpu(0)}));
  EXPECT_EQ(shared.link().over, "threads");
  EXPECT_EQ(shared.link().why_not, "ranks 0 and 2 share a GPU");
  const ThreadWorld mixed(on_gpus({gpu(0), at::kCPU}));
  EXPECT_EQ(mixed.link().over, "threads");
  EXPECT_EQ(mixed.link().why_not, "");
}

// Groups have communicators of their own beside that of all ranks.
TEST(NativeSumsOfThreads, AreThoseOfTheirGroup) {
  ThreadWorld world(natively_on_gpus({gpu(0), gpu(1), gpu(2), gpu(3)}));
  std::vector<Mesh> meshes(kRanks);
  world.run(
      [&](const Group& g) { meshes[std::size_t(g.rank())] = make_mesh(g, {.ring = 2, .tp = 2}); });
  for (int run = 0; run < 3; ++run) {
    world.run([&](const Group& g) {
      const auto& mesh = meshes[std::size_t(g.rank())];
      const auto x = at::full({7}, 1 << g.rank(), at::kFloat).to(gpu(g.rank()));
      for (int step = 0; step < 2; ++step) {
        const int pair = g.rank() / 2 * 2, half = g.rank() % 2;
        EXPECT_EQ(mesh.tp.all_reduce(x)[6].item<float>(), (1 << pair) + (2 << pair));
        EXPECT_EQ(mesh.ring.all_reduce(x)[6].item<float>(), (1 << half) + (4 << half));
        EXPECT_EQ(g.all_reduce(x)[6].item<float>(), 15);
        (void)mesh.ring.ring_shift(x)->wait();
      }
    });
    EXPECT_THAT(
        [&] {
          world.run([&](const Group& g) {
            if (g.rank() == 1) throw Error("out of paint");
            const auto& tp = meshes[std::size_t(g.rank())].tp;
            while (true) (void)tp.all_reduce(at::ones({2}).to(gpu(g.rank())));
          });
        },
        testing::ThrowsMessage<Error>(HasSubstr("out of paint")));
  }
}

// Each result is read and written behind the link's work.
TEST(NativeSumsOfThreads, AreOrderedByEvents) {
  ThreadWorld world(natively_on_gpus({gpu(0), gpu(1)}));
  const OrderOfWork order;
  world.run([](const Group& g) {
    auto x = values(g.rank()).to(gpu(g.rank()));
    for (int i = 0; i < 3; ++i) {
      x = g.all_reduce(x) + 1;
      x.fill_(2);
    }
  });
  EXPECT_THAT(order.complaints(), IsEmpty());
}

TEST(NativeSumsOfThreads, ConnectNothingWhileAStepIsRecorded) {
  ThreadWorld world(natively_on_gpus({gpu(0), gpu(1), gpu(2)}));
  const auto sum = [&] {
    world.run([](const Group& g) {
      const auto pair = g.subgroup(std::vector{0, 1});
      (void)pair.all_reduce(at::ones({2}, gpu(g.rank())));
    });
  };
  {
    const fake_gpu::AreRecording recording;
    EXPECT_THAT(sum, testing::ThrowsMessage<Error>(HasSubstr(
                         "ranks cannot be connected while a step is recorded as a graph")));
  }
  sum();
  const fake_gpu::AreRecording recording;
  sum();  // they are connected
}

TEST(NativeSumsOfThreads, AreRefusedWhereThereIsNoLink) {
  const auto refusal = [](std::vector<at::Device> devices) {
    try {
      const ThreadWorld world(natively_on_gpus(std::move(devices)));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal({gpu(0), gpu(1), gpu(0)}), HasSubstr("ranks 0 and 2 share a GPU"));
  EXPECT_THAT(refusal({gpu(0), at::kCPU}), HasSubstr("rank 1 computes on a CPU"));
  EXPECT_EQ(refusal({gpu(0), gpu(1)}), "");
  EXPECT_EQ(refusal({at::kCPU}), "");
}

}  // namespace braid::fake_crossings_test
