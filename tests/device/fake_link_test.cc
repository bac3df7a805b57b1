// Which devices are one and the same, and who sends what how; with GPUs of which a process may see
// some only.
#include <gmock/gmock.h>

#include "comm/device/device_link.h"
#include "fake_gpu.h"
#include "on_gpus.h"

namespace braid::fake_link_test {

const at::Device kFirst(at::kCUDA, 0), kSecond(at::kCUDA, 1);

TEST(Identity, IsOfTheDeviceAndNotOfItsNumber) {
  const auto first = identity_of(kFirst), second = identity_of(kSecond);
  EXPECT_NE(first.gpu, second.gpu);
  EXPECT_EQ(identity_of(at::kCPU).gpu, "");
  const fake_gpu::SeesFrom only_the_second(1);
  EXPECT_EQ(identity_of(kFirst).gpu, second.gpu);
  EXPECT_EQ(identity_of(kFirst).part, second.part);
}

TEST(WhyThroughHosts, NamesTheRanks) {
  EXPECT_EQ(why_through_hosts({{"a"}, {"b"}, {"c"}}, 22809), "");
  EXPECT_EQ(why_through_hosts({{"a"}, {"b"}, {"c"}, {"b"}}, 23007), "ranks 1 and 3 share a GPU");
  EXPECT_EQ(why_through_hosts({{"a"}, {""}, {"a"}}, 23007), "rank 1 computes on a CPU");
  EXPECT_EQ(why_through_hosts({{"a"}, {"b"}}, 0),
            "LibTorch has loaded no NCCL or RCCL, which link GPUs");
}

// NCCL 2.28 compares places on the bus, 2.30 UUIDs.
TEST(WhyThroughHosts, TellsPartsOfAGpuApart) {
  EXPECT_EQ(why_through_hosts({{"a", "1"}, {"a", "2"}}, 23007), "");
  EXPECT_EQ(why_through_hosts({{"a", "1"}, {"a", "2"}}, 22809),
            "ranks 0 and 1 have parts of one GPU, which NCCL links from 2.30 on");
  EXPECT_EQ(why_through_hosts({{"a", "1"}, {"a", "2"}, {"a", "1"}}, 23007),
            "ranks 0 and 2 share a GPU");
}

// Slurm and containers give each process one GPU, which is its first.
LinkUse link_of_two(int first_of_second) {
  auto sockets = connected(2);
  std::vector<LinkUse> uses(2);
  {
    std::vector<std::jthread> ranks;
    for (int r = 0; r < 2; ++r)
      ranks.emplace_back([&, r] {
        const fake_gpu::SeesFrom sees(r == 0 ? 0 : first_of_second);
        const ProcessWorld world(
            std::make_unique<SocketWire>(r, std::move(sockets[std::size_t(r)])),
            std::chrono::seconds(20),
            {.make_link = [](const Group& all) { return link_devices(all, kFirst); }});
        uses[std::size_t(r)] = world.link();
      });
  }
  EXPECT_EQ(uses[0].over, uses[1].over);
  EXPECT_EQ(uses[0].why_not, uses[1].why_not);
  return uses[0];
}

TEST(Link, IsUsedByProcessesThatSeeOneGpuEach) {
  EXPECT_EQ(link_of_two(1).over, device_link_name());
  const fake_gpu::ArePartsOfOne cut;
  EXPECT_EQ(link_of_two(1).over, device_link_name()) << "parts of one GPU";
}

TEST(Link, IsNotUsedByProcessesThatShareAGpu) {
  EXPECT_NE(device_link_name(), "");
  EXPECT_EQ(link_of_two(0).over, "hosts");
  EXPECT_EQ(link_of_two(0).why_not, "ranks 0 and 1 share a GPU");
}

TEST(Link, MarksNoMemoryAsInUseByAnotherStream) {
  const auto before = fake_gpu::num_streams_recorded();
  run_on_gpus(2, [](const World&, const Group& group, int gpu) {
    (void)group.all_reduce(at::ones({9}, at::Device(at::kCUDA, at::DeviceIndex(gpu))));
  });
  EXPECT_EQ(fake_gpu::num_streams_recorded(), before);
}

}  // namespace braid::fake_link_test
