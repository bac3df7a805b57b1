#include "comm/device/device_reads.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace braid {
namespace {

DeviceEvent shared_mark(const c10::Stream& stream) {
  auto event = std::make_shared<c10::Event>(stream.device_type());
  event->record(stream);
  return event;
}

c10::impl::VirtualGuardImpl guard_of(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type());
}

}  // namespace

DeviceEvent mark_current(const std::vector<at::Tensor>& tensors) {
  if (tensors.empty() || !tensors.front().defined() || !tensors.front().is_cuda()) return nullptr;
  const auto device = tensors.front().device();
  return shared_mark(guard_of(device).getStream(device));
}

void wait_on_current(const DeviceEvent& event) {
  if (!event) return;
  const at::Device device(event->device_type(), event->device_index());
  event->block(guard_of(device).getStream(device));
}

DeviceEvent DeviceReads::operator()(at::Device from, at::Device to, const DeviceEvent& ready,
                                    const std::function<void()>& read) {
  if (from == to || !from.is_cuda() || !to.is_cuda() || !ready) {
    read();
    return nullptr;
  }
  auto known = streams_.find(from.index());
  if (known == streams_.end())
    known = streams_.emplace(from.index(), guard_of(from).getStreamFromGlobalPool(from)).first;
  const c10::StreamGuard on(known->second);
  ready->block(known->second);
  read();
  return shared_mark(known->second);
}

}  // namespace braid
