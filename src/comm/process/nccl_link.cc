// Device messages over NCCL, or RCCL, which has the same names. One communicator of all ranks
// serves every group: it only does sends and receives between pairs, so that sums are in rank order
// as over every other transport.
#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <nccl.h>

#include <atomic>
#include <cstring>
#include <tuple>

#include "base/error.h"
#include "comm/group.h"
#include "comm/process/device_link.h"
#include "comm/process/side_stream.h"

namespace braid {
namespace {

template <class Return, class... Arguments>
auto last_of(Return (*)(Arguments...))
    -> std::tuple_element_t<sizeof...(Arguments) - 1, std::tuple<Arguments...>>;
// NCCL's stream type, which is named differently for CUDA and HIP.
using NativeStream = decltype(last_of(&ncclSend));

void must(ncclResult_t code, const char* what) {
  check(code == ncclSuccess, what, ": ", ncclGetErrorString(code));
}

class NcclLink : public DeviceLink {
 public:
  NcclLink(const Group& world, at::Device device) : device_(device), side_(device) {
    connect(world);
  }
  ~NcclLink() override { abort(); }

  void renew(const Group& world) override {
    abort();
    connect(world);
  }

  std::function<void()> start(const std::vector<Message>& sends,
                              const std::vector<Message>& receives) override {
    std::vector<Tensor> tensors;
    for (const auto* messages : {&sends, &receives})
      for (const auto& message : *messages) tensors.push_back(message.x);
    return side_.start(std::move(tensors),
                       [&](const c10::Stream& stream) { enqueue(sends, receives, stream); });
  }

  void abort() noexcept override {
    if (!is_aborted_.exchange(true)) ncclCommAbort(comm_);
  }

 private:
  void connect(const Group& world) {
    ncclUniqueId id{};
    if (world.rank() == 0) must(ncclGetUniqueId(&id), "ncclGetUniqueId");
    auto bytes = at::empty({sizeof id}, at::kByte);
    std::memcpy(bytes.mutable_data_ptr(), &id, sizeof id);
    bytes = world.broadcast(bytes, 0);
    std::memcpy(&id, bytes.const_data_ptr(), sizeof id);
    const c10::DeviceGuard on(device_);
    must(ncclCommInitRank(&comm_, world.size(), id, world.rank()), "ncclCommInitRank");
    is_aborted_ = false;
  }

  void enqueue(const std::vector<Message>& sends, const std::vector<Message>& receives,
               const c10::Stream& stream) {
    check(!is_aborted_, "the link between the devices has failed");
    const auto native = static_cast<NativeStream>(stream.native_handle());
    const auto size_of = [](const Tensor& x) { return std::size_t(x.numel()) * x.element_size(); };
    must(ncclGroupStart(), "ncclGroupStart");
    for (const auto& [peer, x] : sends)
      must(ncclSend(x.const_data_ptr(), size_of(x), ncclInt8, peer, comm_, native), "ncclSend");
    for (const auto& [peer, x] : receives)
      must(ncclRecv(x.mutable_data_ptr(), size_of(x), ncclInt8, peer, comm_, native), "ncclRecv");
    must(ncclGroupEnd(), "ncclGroupEnd");
  }

  at::Device device_;
  SideStream side_;
  ncclComm_t comm_ = nullptr;
  std::atomic<bool> is_aborted_ = true;  // also true before connecting
};

}  // namespace

std::string device_link_name() {
  int v = 0;  // 23007
  must(ncclGetVersion(&v), "ncclGetVersion");
  return text_of("NCCL ", v / 10000, ".", v / 100 % 100, ".", v % 100);
}

std::shared_ptr<DeviceLink> make_device_link(const Group& world, at::Device device) {
  return std::make_shared<NcclLink>(world, device);
}

}  // namespace braid
