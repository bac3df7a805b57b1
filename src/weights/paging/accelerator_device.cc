#include "weights/paging/accelerator_device.h"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "weights/paging/locked_memory.h"
#include "weights/paging/page_bytes.h"

namespace braid {
namespace {

c10::Stream new_stream(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

Tensor in_memory(const PageBytes& page) {
  if (page.memory.defined()) return page.memory;
  const auto bytes = aligned_bytes(page.size);
  read_page(page, static_cast<std::byte*>(bytes.mutable_data_ptr()));
  return bytes;
}

}  // namespace

AcceleratorPageDevice::AcceleratorPageDevice(at::Device device, Pin pin)
    : device_(device), pin_(pin), copies_(new_stream(device)) {}

AcceleratorPageDevice::~AcceleratorPageDevice() {
  try {
    copies_.synchronize();
  } catch (const std::exception&) {
    // the device has failed; whoever waited for a copy has got its error
  }
}

c10::Stream AcceleratorPageDevice::stream_of(StreamName stream) const {
  if (stream == StreamName::kCopy) return copies_;
  return c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
}

Slot AcceleratorPageDevice::allocate(std::int64_t bytes, Site) {
  const auto memory = at::empty({bytes}, at::TensorOptions(at::kByte).device(device_));
  slots_.push_back({.memory = memory, .staging = Tensor()});
  return {int(slots_.size()) - 1};
}

void AcceleratorPageDevice::free(Slot slot, Site) { slots_[std::size_t(slot.id)] = SlotState(); }

Event AcceleratorPageDevice::make_event(Site) {
  events_.push_back(std::make_unique<c10::Event>(device_.type()));
  return {int(events_.size()) - 1};
}

void AcceleratorPageDevice::record(Event event, StreamName stream, Site) {
  event_of(event).record(stream_of(stream));
}

void AcceleratorPageDevice::wait(StreamName stream, Event event, Site) {
  event_of(event).block(stream_of(stream));
}

// Gives a slot staging memory that is locked, unless Pin::kNever or the system forbids it.
void AcceleratorPageDevice::lock_staging(SlotState& slot) const {
  if (slot.staged) return;
  slot.staged = std::make_unique<c10::Event>(device_.type());
  if (pin_ == Pin::kNever) return;
  const auto memory = locked(aligned_bytes(slot.memory.numel()));
  slot.is_locked = memory.has_value();
  if (memory) slot.staging = *memory;
}

// Reads the page into the slot's staging memory. The last copy out of it was issued one round of
// slots ago.
Tensor AcceleratorPageDevice::stage(SlotState& slot, const PageBytes& page) const {
  if (!slot.staging.defined()) slot.staging = aligned_bytes(slot.memory.numel());
  slot.staged->synchronize();
  read_page(page, static_cast<std::byte*>(slot.staging.mutable_data_ptr()));
  return slot.staging.narrow(0, 0, page.size);
}

void AcceleratorPageDevice::copy(StreamName stream, Slot to, const PageBytes& from, Site) {
  auto& slot = slots_[std::size_t(to.id)];
  const auto target = slot.memory.narrow(0, 0, from.size);
  if (stream == StreamName::kCompute) {
    target.copy_(in_memory(from));
    return;
  }
  if (!from.is_locked) lock_staging(slot);
  // A file's pages are staged. Those in host memory gain only by staging memory that is locked.
  const bool is_staged = !from.memory.defined() || (!from.is_locked && slot.is_locked);
  const auto source = is_staged ? stage(slot, from) : from.memory;
  const c10::StreamGuard on_stream(copies_);
  target.copy_(source, /*non_blocking=*/true);
  if (is_staged) slot.staged->record(copies_);
}

void AcceleratorPageDevice::synchronize(Event event, Site) { event_of(event).synchronize(); }

}  // namespace braid
