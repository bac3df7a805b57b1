// Collectives of tensors on GPUs, which go from device to device.
#include <ATen/ATen.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>

#include "comm/device/device_link.h"
#include "comm/reduce.h"
#include "on_gpus.h"
#include "ops/sums.h"
#include "pipeline/graphs/device_graph.h"

namespace braid::link_test {

constexpr int kRanks = 2;

class LinkOfGpus : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    if (num_gpus() < kRanks) GTEST_SKIP() << "there is one GPU";
    if (device_link_name().empty()) GTEST_SKIP() << "this build has no link between GPUs";
  }
  // The values of rank `rank`, which every rank computes alike.
  static Tensor values(int rank, at::ScalarType dtype = at::kBFloat16) {
    return (at::arange(5 * 7, at::kFloat).view({5, 7}) * (rank + 1) / 3).to(dtype);
  }
  static Tensor on(int gpu, const Tensor& x) { return x.to(at::Device(at::kCUDA, gpu)); }
  static c10::CachingAllocator::Stat bytes(int gpu) {
    constexpr auto kAll = std::size_t(c10::CachingAllocator::StatType::AGGREGATE);
    return c10::getDeviceAllocator(at::kCUDA)
        ->getDeviceStats(at::DeviceIndex(gpu))
        .allocated_bytes[kAll];
  }
  // Sums as layers do, without memory of its own.   x [tokens width]
  static void sum(const Group& group, const Tensor& x) {
    (void)group.all_reduce(
        {x}, [&](const SumRun& run, std::span<const Tensor> parts, const Tensor& out) {
          const auto& begin = run.elements.begin;
          ops::add_parts(parts, {}, {.tokens = x.size(0), .width = x.size(1), .begin = begin}, out);
        });
  }
};

TEST_F(LinkOfGpus, IsUsedWhereEachRankHasAGpu) {
  run_on_gpus(kRanks, [](const World& world, const Group& group, int) {
    EXPECT_EQ(world.link().over, device_link_name());
    EXPECT_EQ(world.link().why_not, "");
    EXPECT_TRUE(group.stays_on_device());
  });
}

// The bits that ranks in threads of one process compute.
TEST_F(LinkOfGpus, MakesWhatThreadsMake) {
  std::vector<std::vector<Tensor>> want(kRanks), got(kRanks);
  const auto all = [](const Group& group, const std::function<Tensor(const Tensor&)>& put) {
    std::vector<Tensor> made;
    for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
      const auto x = put(values(group.rank(), dtype));
      made.push_back(group.all_reduce(x));
      made.push_back(group.all_gather(x.narrow(0, 0, 2 + group.rank()), 0));
      for (const auto& part : group.all_to_all({x.narrow(0, 0, 3), x.narrow(1, 0, 2)}))
        made.push_back(part);
      made.push_back(group.broadcast(x, 1));
      made.push_back(group.ring_shift(x)->wait());
    }
    return made;
  };
  run_ranks({.size = kRanks}, [&](const Group& group) {
    want[std::size_t(group.rank())] = all(group, [](const Tensor& x) { return x; });
  });
  run_on_gpus(kRanks, [&](const World&, const Group& group, int gpu) {
    const c10::DeviceGuard guard(at::Device(at::kCUDA, at::DeviceIndex(gpu)));
    for (const auto& x : all(group, [&](const Tensor& t) { return on(gpu, t); }))
      got[std::size_t(group.rank())].push_back(x.cpu());
  });
  for (int r = 0; r < kRanks; ++r) {
    const auto &mine = got[std::size_t(r)], &theirs = want[std::size_t(r)];
    ASSERT_EQ(mine.size(), theirs.size());
    for (std::size_t i = 0; i < mine.size(); ++i)
      EXPECT_TRUE(at::equal(mine[i], theirs[i])) << "rank " << r << " result " << i;
  }
}

// A step has dozens: what one needs is there again for the next.
TEST_F(LinkOfGpus, HoldsNoMoreThanIsCountedHoweverOftenItIsUsed) {
  run_on_gpus(kRanks, [](const World&, const Group& group, int gpu) {
    const c10::DeviceGuard guard(at::Device(at::kCUDA, at::DeviceIndex(gpu)));
    const auto x = on(gpu, at::rand({1000, 1023}).to(at::kBFloat16));
    const auto before = bytes(gpu).current;
    c10::getDeviceAllocator(at::kCUDA)->resetPeakStats(at::DeviceIndex(gpu));
    for (int i = 0; i < 20; ++i) sum(group, x);
    const auto counted = all_reduce_bytes(x.numel(), 2, kRanks);
    constexpr std::int64_t kBlocks = 5 * 512;  // what the allocator rounds up
    EXPECT_LE(bytes(gpu).peak - before, counted + kBlocks);
    EXPECT_GT(bytes(gpu).peak - before, counted / 2);
  });
}

// What is in use by two streams would come back when the recording ends.
TEST_F(LinkOfGpus, HoldsNoMoreThanIsCountedWhileItIsRecorded) {
  if (!make_device_graph(gpu())) GTEST_SKIP() << "this build records no graphs";
  run_on_gpus(kRanks, [](const World&, const Group& group, int index) {
    const at::Device mine(at::kCUDA, at::DeviceIndex(index));
    const c10::DeviceGuard guard(mine);
    const c10::impl::VirtualGuardImpl device(at::kCUDA);
    const auto x = on(index, at::rand({1000, 1023}).to(at::kBFloat16));
    (void)group.all_reduce(x);  // NCCL connects at first use
    const auto graph = make_device_graph(mine);
    device.synchronizeDevice(mine.index());
    const c10::StreamGuard stream(device.getStreamFromGlobalPool(mine));
    const auto before = bytes(index).current;
    c10::getDeviceAllocator(at::kCUDA)->resetPeakStats(mine.index());
    graph->begin();
    for (int i = 0; i < 20; ++i) sum(group, x);
    graph->end();
    EXPECT_LE(bytes(index).peak - before, all_reduce_bytes(x.numel(), 2, kRanks) + 5 * 512);
  });
}

// Numbers that need no rounding.
TEST_F(LinkOfGpus, TakesSumsNativelyWhereItIsAskedTo) {
  run_on_gpus(
      kRanks,
      [](const World&, const Group& group, int gpu) {
        const c10::DeviceGuard guard(at::Device(at::kCUDA, at::DeviceIndex(gpu)));
        for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf, at::kLong, at::kBool}) {
          const auto x = (at::arange(5 * 7) % 3 + group.rank()).view({5, 7}).to(dtype);
          const auto sum = group.all_reduce(x), before = on(gpu, x);  // through the hosts
          EXPECT_TRUE(at::equal(group.all_reduce(before).cpu(), sum)) << dtype;
          EXPECT_TRUE(at::equal(before.cpu(), x)) << dtype;
        }
        const auto x = values(group.rank(), at::kFloat), sum = group.all_reduce(x);
        EXPECT_TRUE(at::allclose(group.all_reduce(on(gpu, x)).cpu(), sum));
      },
      Collectives::kNative);
}

// Bias and gated residual are added once, behind the sum.
TEST_F(LinkOfGpus, EndsNativeSumsAsItsOwn) {
  const auto ended = [](const Group& group, at::ScalarType dtype, int gpu) {
    const auto put = [&](const Tensor& x) { return on(gpu, x.to(dtype)); };
    const auto part = put(at::arange(2 * 6 * 8).view({2, 6, 8}) % 5 * (group.rank() + 1));
    const ops::SumEnd end{.bias_C = put(at::arange(8)),
                          .residual_BLC = put(at::arange(2 * 6 * 8).view({2, 6, 8}) % 7),
                          .gate_B1C = put(at::full({2, 1, 8}, 2))};
    return group
        .all_reduce({part},
                    [&](const SumRun& run, std::span<const Tensor> parts, const Tensor& out) {
                      ops::add_parts(parts, end,
                                     {.tokens = 6, .width = 8, .begin = run.elements.begin}, out);
                    })
        .front()
        .cpu();
  };
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    std::vector<Tensor> want(kRanks), got(kRanks);
    for (const auto collectives : {Collectives::kOrdered, Collectives::kNative})
      run_on_gpus(
          kRanks,
          [&](const World&, const Group& group, int gpu) {
            const c10::DeviceGuard guard(at::Device(at::kCUDA, at::DeviceIndex(gpu)));
            auto& here = collectives == Collectives::kNative ? got : want;
            here[std::size_t(group.rank())] = ended(group, dtype, gpu);
          },
          collectives);
    for (int r = 0; r < kRanks; ++r)
      EXPECT_TRUE(at::equal(got[std::size_t(r)], want[std::size_t(r)])) << dtype << " rank " << r;
  }
}

TEST_F(LinkOfGpus, HoldsTheResultAloneOfNativeSums) {
  run_on_gpus(
      kRanks,
      [](const World&, const Group& group, int gpu) {
        const c10::DeviceGuard guard(at::Device(at::kCUDA, at::DeviceIndex(gpu)));
        const auto x = on(gpu, at::rand({100, 1023}).to(at::kBFloat16));
        sum(group, x);
        const auto before = bytes(gpu).current;
        c10::getDeviceAllocator(at::kCUDA)->resetPeakStats(at::DeviceIndex(gpu));
        for (int i = 0; i < 5; ++i) sum(group, x);
        EXPECT_LE(bytes(gpu).peak - before, x.numel() * 2 + 512);
      },
      Collectives::kNative);
}

TEST_F(LinkOfGpus, ReplaysNativeSums) {
  if (!make_device_graph(gpu())) GTEST_SKIP() << "this build records no graphs";
  run_on_gpus(
      kRanks,
      [](const World&, const Group& group, int index) {
        const at::Device mine(at::kCUDA, at::DeviceIndex(index));
        const c10::DeviceGuard guard(mine);
        const c10::impl::VirtualGuardImpl device(at::kCUDA);
        const auto x = on(index, values(group.rank()));
        const auto eager = group.all_reduce(x);  // NCCL connects at first use
        const auto graph = make_device_graph(mine);
        device.synchronizeDevice(mine.index());
        const c10::StreamGuard stream(device.getStreamFromGlobalPool(mine));
        graph->begin();
        const auto replayed = group.all_reduce(x);
        graph->end();
        for (int time = 0; time < 3; ++time) {
          replayed.zero_();
          graph->replay();
          EXPECT_TRUE(at::equal(replayed, eager));
        }
      },
      Collectives::kNative);
}

}  // namespace braid::link_test
