// Worlds whose devices are linked by the stand-in of fake_nccl.h. Tensors without memory (meta)
// stand for device tensors.
#pragma once

#include <thread>

#include "comm/device/nccl_communicators.h"
#include "comm/worlds.h"
#include "fake_nccl.h"
#include "wait_until.h"

namespace braid {

// What NcclLink does, without streams.
class HostLink : public DeviceLink {
 public:
  HostLink(const Group& world, std::chrono::milliseconds patience)
      : communicators_(fake_nccl().functions, at::kCPU, patience) {
    communicators_.connect(world);
  }
  std::function<void()> start(const std::vector<Message>& sends,
                              const std::vector<Message>& receives) override {
    communicators_.of_world().exchange(sends, receives, nullptr);
    return [] {};
  }
  std::function<void()> all_reduce(const Members& members, const std::vector<Sum>& sums) override {
    auto* const found = communicators_.find(members.ranks);
    (found ? *found : communicators_.connect(members)).all_reduce(sums, nullptr);
    return [] {};
  }
  bool can_sum(at::ScalarType dtype) const override { return NcclCommunicator::can_sum(dtype); }
  void abort() noexcept override { communicators_.abort(); }
  void renew(const Group& world) override { communicators_.connect(world); }

 private:
  NcclCommunicators communicators_;
};

struct HostLinkOptions {
  int ranks = 2;
  std::chrono::milliseconds patience = std::chrono::seconds(30);
  Collectives collectives = Collectives::kOrdered;
};

inline void with_host_links(const HostLinkOptions& options,
                            const std::function<void(ProcessWorld&)>& use) {
  on_connected_ranks(options.ranks, [&](int rank, auto sockets) {
    ProcessWorld world(
        std::make_unique<SocketWire>(rank, std::move(sockets)), std::chrono::seconds(20),
        {.make_link =
             [&](const Group& g) {
               return LinkedDevices{.link = std::make_shared<HostLink>(g, options.patience)};
             },
         .collectives = options.collectives});
    use(world);
  });
}

inline Tensor on_no_device() { return at::empty({3}, at::TensorOptions(at::kMeta)); }

// A step that was recorded once, as a StepGraph keeps it.
class RecordedSum {
 public:
  ~RecordedSum() { forget(); }
  void step(const Group& g) {
    fake_nccl().record(this);
    (void)g.all_reduce(on_no_device());
    fake_nccl().record(nullptr);
  }
  void forget() { fake_nccl().destroy_graph(this); }
};

// Tests that end only when all communicators have.
class WithFakeNccl : public testing::Test {
 protected:
  void TearDown() override {
    fake_nccl().set_start(FakeNccl::kWell);
    EXPECT_TRUE(wait_until([] { return fake_nccl().num_communicators() == 0; }))
        << fake_nccl().num_communicators() << " were never freed";
  }
};

}  // namespace braid
