#include "weights/paging/cpu_device.h"

#include <ATen/ATen.h>

#include <utility>

#include "base/error.h"

namespace braid {

CpuPageDevice::~CpuPageDevice() { copies_.finish(); }

Slot CpuPageDevice::allocate(std::int64_t bytes, Site) {
  slots_.push_back(aligned_bytes(bytes));
  return {int(slots_.size()) - 1};
}

void CpuPageDevice::free(Slot slot, Site) { slots_[std::size_t(slot.id)] = Tensor(); }

Event CpuPageDevice::make_event(Site) { return {events_.make()}; }

void CpuPageDevice::record(Event event, StreamName stream, Site) {
  const auto time = events_.record(event.id);
  if (stream == StreamName::kCompute) return events_.reach(event.id, time);
  copies_.push([this, event, time] {
    settle(event);
    events_.reach(event.id, time);
  });
}

void CpuPageDevice::wait(StreamName stream, Event event, Site) {
  const auto time = events_.recorded(event.id);
  if (stream == StreamName::kCopy)
    return copies_.push([this, event, time] { events_.await(event.id, time); });
  events_.await(event.id, time);
  throw_failure(event);
}

void CpuPageDevice::copy(StreamName stream, Slot to, const PageBytes& from, Site) {
  auto* const target = static_cast<std::byte*>(memory(to).mutable_data_ptr());
  if (stream == StreamName::kCompute) return read_page(from, target);
  copies_.push([this, target, from] {
    try {
      read_page(from, target);
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
    }
  });
}

void CpuPageDevice::synchronize(Event event, Site) {
  events_.await(event.id, events_.recorded(event.id));
  throw_failure(event);
}

// Runs on the copy stream. A failure belongs to one event: the next copy may well succeed.
void CpuPageDevice::settle(Event event) {
  const std::scoped_lock lock(mutex_);
  failures_[event.id] = std::exchange(failure_, nullptr);
}

void CpuPageDevice::throw_failure(Event event) const {
  const std::scoped_lock lock(mutex_);
  const auto failure = failures_.find(event.id);
  if (failure != failures_.end() && failure->second) std::rethrow_exception(failure->second);
}

}  // namespace braid
