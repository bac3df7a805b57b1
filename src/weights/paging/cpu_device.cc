#include "weights/paging/cpu_device.h"

#include <ATen/ATen.h>

#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "weights/paging/page_file.h"

namespace braid {

Tensor aligned_bytes(std::int64_t size) {
  constexpr std::size_t kAlignment = 4096;
  const auto rounded = (std::size_t(size) + kAlignment - 1) / kAlignment * kAlignment;
  void* const memory = std::aligned_alloc(kAlignment, std::max(rounded, kAlignment));
  check(memory != nullptr, "there is no memory for a page of ", size, " bytes");
  return at::from_blob(
      memory, {size}, [](void* data) { std::free(data); }, at::TensorOptions(at::kByte));
}

std::span<std::byte> span_of(const Tensor& bytes) {
  return {static_cast<std::byte*>(bytes.mutable_data_ptr()), std::size_t(bytes.numel())};
}

void read_page(const PageBytes& page, std::byte* target) {
  if (page.file) return page.file->read({target, std::size_t(page.size)});
  std::memcpy(target, page.memory.const_data_ptr(), std::size_t(page.size));
}

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
  copies_.push([this, event, time] { events_.reach(event.id, time); });
}

void CpuPageDevice::wait(StreamName stream, Event event, Site) {
  const auto time = events_.recorded(event.id);
  if (stream == StreamName::kCopy)
    return copies_.push([this, event, time] { events_.await(event.id, time); });
  events_.await(event.id, time);
  throw_failure();
}

void CpuPageDevice::copy(StreamName stream, Slot to, const PageBytes& from, Site) {
  auto* const target = static_cast<std::byte*>(memory(to).mutable_data_ptr());
  if (stream == StreamName::kCompute) return read_page(from, target);
  copies_.push([this, target, from] {
    try {
      read_page(from, target);
    } catch (...) {
      fail(std::current_exception());
    }
  });
}

void CpuPageDevice::synchronize(Event event, Site) {
  events_.await(event.id, events_.recorded(event.id));
  throw_failure();
}

void CpuPageDevice::fail(std::exception_ptr failure) {
  const std::scoped_lock lock(mutex_);
  if (!failure_) failure_ = std::move(failure);
}

void CpuPageDevice::throw_failure() const {
  const std::scoped_lock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace braid
