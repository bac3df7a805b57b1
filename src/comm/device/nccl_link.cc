// Device messages over NCCL, or RCCL, which has the same names. One communicator of all ranks
// serves every group: it only does sends and receives between pairs, so that sums are in rank order
// as over every other transport. A group that has its sums taken by NCCL has a communicator of its
// own. One side stream gives all of them the same order on every rank.
#include <c10/core/impl/VirtualGuardImpl.h>

#include "base/error.h"
#include "base/gpu_runtime.h"
#include "comm/device/device_link.h"
#include "comm/device/nccl_communicators.h"
#include "comm/device/side_stream.h"
#include "comm/group.h"

namespace braid {
namespace {

class NcclLink : public DeviceLink {
 public:
  NcclLink(const Nccl& nccl, const Group& world, at::Device device)
      : communicators_(nccl, device), device_(device), side_(device) {
    communicators_.connect(world);
  }

  void renew(const Group& world) override { communicators_.connect(world); }
  void abort() noexcept override { communicators_.abort(); }
  bool can_sum(at::ScalarType dtype) const override { return NcclCommunicator::can_sum(dtype); }

  std::function<void()> start(const std::vector<Message>& sends,
                              const std::vector<Message>& receives) override {
    std::vector<at::Tensor> tensors;
    for (const auto* messages : {&sends, &receives})
      for (const auto& message : *messages) tensors.push_back(message.x);
    return side_.start(std::move(tensors), [&](const c10::Stream& stream) {
      communicators_.of_world().exchange(sends, receives, stream.native_handle());
    });
  }

  std::function<void()> all_reduce(const Members& members, const std::vector<Sum>& sums) override {
    auto& communicator = communicator_of(members);
    std::vector<at::Tensor> tensors;
    for (const auto& [x, result] : sums) tensors.insert(tensors.end(), {x, result});
    return side_.start(std::move(tensors), [&](const c10::Stream& stream) {
      communicator.all_reduce(sums, stream.native_handle());
    });
  }

 private:
  NcclCommunicator& communicator_of(const Members& members) {
    if (auto* const found = communicators_.find(members.ranks)) return *found;
    check(!is_recording(), "ranks cannot be connected while a step is recorded as a graph");
    return communicators_.connect(members);
  }
  bool is_recording() const {
    const c10::impl::VirtualGuardImpl guard(device_.type());
    return gpu_runtime::is_recording(guard.getStream(device_).native_handle());
  }

  NcclCommunicators communicators_;
  at::Device device_;
  SideStream side_;
};

}  // namespace

int device_link_version() {
  const auto nccl = loaded_nccl();
  int version = 0;  // 23007
  return nccl && nccl->get_version(&version) == Nccl::kSuccess ? version : 0;
}

std::shared_ptr<DeviceLink> make_device_link(const Group& world, at::Device device) {
  const auto nccl = loaded_nccl();
  check(nccl.has_value(), "LibTorch has loaded no NCCL");
  return std::make_shared<NcclLink>(*nccl, world, device);
}

}  // namespace braid
