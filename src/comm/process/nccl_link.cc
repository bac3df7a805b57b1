// Device messages over NCCL, and over RCCL, which has the same names. One communicator of all ranks
// serves every group: what is asked of it are sends and receives between pairs only, so that sums
// are taken in rank order as over every other transport.
#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <nccl.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string_view>
#include <tuple>

#include "base/error.h"
#include "comm/group.h"
#include "comm/process/device_link.h"

namespace braid {
namespace {

template <class Return, class... Arguments>
auto last_of(Return (*)(Arguments...))
    -> std::tuple_element_t<sizeof...(Arguments) - 1, std::tuple<Arguments...>>;
// What NCCL's header calls a stream: CUDA's and HIP's have different names.
using NativeStream = decltype(last_of(&ncclSend));

void must(ncclResult_t code, const char* what) {
  check(code == ncclSuccess, what, ": ", ncclGetErrorString(code));
}

class NcclLink : public DeviceLink {
 public:
  NcclLink(const Group& world, at::Device device)
      : device_(device), guard_(device.type()), side_(guard_.getNewStream(device)) {
    connect(world);
  }
  ~NcclLink() override { abort(); }

  void renew(const Group& world) override {
    abort();
    connect(world);
  }

  std::function<void()> start(const std::vector<Message>& sends,
                              const std::vector<Message>& receives) override {
    mark(guard_.getStream(device_)).block(side_);
    enqueue(sends, receives, side_);
    for (const auto* messages : {&sends, &receives})
      for (const auto& message : *messages) message.x.record_stream(side_);
    auto done = std::make_shared<c10::Event>(mark(side_));
    return [this, done] { done->block(guard_.getStream(device_)); };
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
    guard_.exchangeDevice(device_);
    must(ncclCommInitRank(&comm_, world.size(), id, world.rank()), "ncclCommInitRank");
    is_aborted_ = false;
  }

  c10::Event mark(const c10::Stream& stream) const {
    c10::Event event(device_.type());
    event.record(stream);
    return event;
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
  c10::impl::VirtualGuardImpl guard_;
  c10::Stream side_;
  ncclComm_t comm_ = nullptr;
  std::atomic<bool> is_aborted_ = true;  // or not connected yet
};

// The same number for the same device of the same host.
std::int64_t hash_of(at::Device device) {
  std::string name(256, '\0');
  ::gethostname(name.data(), name.size() - 1);
  name += std::to_string(int(device.index()));
  return std::int64_t(std::hash<std::string_view>()(name));
}

}  // namespace

std::shared_ptr<DeviceLink> make_device_link(const Group& world, at::Device device) {
  if (world.size() == 1) return nullptr;
  const auto mine = device.is_cpu() ? 0 : hash_of(device);
  const auto all = world.all_gather(at::full({1}, mine, at::kLong), 0);
  const bool any_cpu = all.eq(0).any().item<bool>();
  const bool any_shared = std::get<0>(at::_unique(all)).numel() < all.numel();
  return any_cpu || any_shared ? nullptr : std::make_shared<NcclLink>(world, device);
}

}  // namespace braid
