// Device messages over NCCL, or RCCL, which has the same names. One communicator of all ranks
// serves every group: it only does sends and receives between pairs, so that sums are in rank order
// as over every other transport.
#include "base/error.h"
#include "comm/group.h"
#include "comm/process/device_link.h"
#include "comm/process/nccl_communicator.h"
#include "comm/process/side_stream.h"

namespace braid {
namespace {

class NcclLink : public DeviceLink {
 public:
  NcclLink(const Nccl& nccl, const Group& world, at::Device device)
      : communicator_(nccl, device), side_(device) {
    communicator_.connect(world);
  }

  void renew(const Group& world) override { communicator_.connect(world); }
  void abort() noexcept override { communicator_.abort(); }

  std::function<void()> start(const std::vector<Message>& sends,
                              const std::vector<Message>& receives) override {
    std::vector<at::Tensor> tensors;
    for (const auto* messages : {&sends, &receives})
      for (const auto& message : *messages) tensors.push_back(message.x);
    return side_.start(std::move(tensors), [&](const c10::Stream& stream) {
      communicator_.exchange(sends, receives, stream.native_handle());
    });
  }

 private:
  NcclCommunicator communicator_;
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
