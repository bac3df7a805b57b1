// A device on threads: compute and copies have one each, and take random times. A use checks its
// slot twice, with a delay in between: missing synchronisation shows as wrong bytes.
#pragma once

#include <atomic>
#include <cstring>
#include <random>
#include <vector>

#include "weights/paging/cpu_device.h"
#include "weights/paging/device.h"
#include "weights/paging/work_queue.h"

namespace braid::testing_pages {

class SimulatedDevice : public PageDevice {
 public:
  // Each operation takes up to `longest`.
  explicit SimulatedDevice(std::uint64_t seed = 0, std::chrono::microseconds longest = {})
      : random_(seed), longest_(longest) {}
  ~SimulatedDevice() override { finish(); }

  bool is_asynchronous() const override { return true; }

  Slot allocate(std::int64_t bytes, Site = Site::current()) override {
    slots_.push_back(aligned_bytes(bytes));
    return {int(slots_.size()) - 1};
  }
  // The memory soon belongs to another: its bytes change, as far as a test may see.
  void free(Slot slot, Site = Site::current()) override {
    auto& memory = slots_[std::size_t(slot.id)];
    std::memset(memory.mutable_data_ptr(), 0xdd, std::size_t(memory.numel()));
  }
  Tensor memory(Slot slot) const override { return slots_[std::size_t(slot.id)]; }
  Event make_event(Site = Site::current()) override { return {events_.make()}; }

  void record(Event event, StreamName stream, Site = Site::current()) override {
    const auto time = events_.record(event.id);
    queue(stream).push([this, event, time] { events_.reach(event.id, time); });
  }
  void wait(StreamName stream, Event event, Site = Site::current()) override {
    const auto time = events_.recorded(event.id);
    queue(stream).push([this, event, time] { events_.await(event.id, time); });
  }
  void copy(StreamName stream, Slot to, const PageBytes& from, Site = Site::current()) override {
    auto* const target = static_cast<std::byte*>(memory(to).mutable_data_ptr());
    copied_.insert_or_assign(from.version, from.memory);
    queue(stream).push([this, target, from, pause = some_time()] {
      const auto half = std::size_t(from.size) / 2;
      std::memcpy(target, from.memory.const_data_ptr(), half);
      std::this_thread::sleep_for(pause);
      std::memcpy(target + half, static_cast<const std::byte*>(from.memory.const_data_ptr()) + half,
                  std::size_t(from.size) - half);
    });
    if (stream == StreamName::kCompute) computations_.finish();
  }
  void use(StreamName stream, Slot slot, const PageBytes& contents,
           Site = Site::current()) override {
    const auto held = memory(slot);
    if (!copied_.contains(contents.version)) return;
    queue(stream).push([this, held, wanted = copied_.at(contents.version), pause = some_time()] {
      look(held, wanted);
      std::this_thread::sleep_for(pause);
      look(held, wanted);
    });
  }
  void synchronize(Event event, Site = Site::current()) override {
    events_.await(event.id, events_.recorded(event.id));
  }

  void finish() {
    computations_.finish();
    copies_.finish();
  }
  // Checks of a slot that saw unexpected bytes. Call after finish().
  int num_wrong() const { return num_wrong_; }

 private:
  WorkQueue& queue(StreamName stream) {
    return stream == StreamName::kCompute ? computations_ : copies_;
  }
  std::chrono::microseconds some_time() {
    if (longest_.count() == 0) return {};
    return std::chrono::microseconds(random_() % std::uint64_t(longest_.count() + 1));
  }
  void look(const Tensor& held, const Tensor& wanted) {
    num_wrong_ += std::memcmp(held.const_data_ptr(), wanted.const_data_ptr(),
                              std::size_t(wanted.numel())) != 0;
  }

  std::mt19937_64 random_;
  std::chrono::microseconds longest_;
  std::vector<Tensor> slots_;
  std::map<std::uint64_t, Tensor> copied_;  // contents by version
  HostEvents events_;
  std::atomic<int> num_wrong_ = 0;
  WorkQueue computations_, copies_;  // last: their threads use the members above
};

}  // namespace braid::testing_pages
