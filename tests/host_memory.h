// LibTorch's host memory in this test program: counted, and able to run out.
#pragma once

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <unordered_map>

namespace braid {

class HostMemory : public c10::Allocator {
 public:
  // Counts from the first call on.
  static HostMemory& get() {
    static auto* const memory = new HostMemory();
    return *memory;
  }

  std::int64_t live_bytes() const { return live_bytes_; }
  std::int64_t num_allocations() const { return num_allocations_; }

  // Calls `act` once instead of the allocation that follows `count` others, in any thread. If it
  // throws, the allocation fails with that. No count: never.
  void act_after(std::optional<std::int64_t> count, std::function<void()> act = {}) {
    const std::scoped_lock lock(mutex_);
    left_ = count.value_or(-1);
    act_ = std::move(act);
  }
  void run_out_after(std::int64_t count) {
    act_after(count, [] { TORCH_CHECK(false, "DefaultCPUAllocator: can't allocate memory"); });
  }

  c10::DataPtr allocate(std::size_t size) override {
    take_turn();
    auto data = base_->allocate(size);
    void* const begin = data.get();
    if (!begin) return data;
    data.release_context();  // raw_allocate() requires the context to be the memory itself
    const std::scoped_lock lock(mutex_);
    sizes_[begin] = std::int64_t(size);
    live_bytes_ += std::int64_t(size);
    return {begin, begin, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t size) const override {
    default_copy_data(to, from, size);
  }

 private:
  HostMemory() : base_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(this, /*priority=*/1); }

  static void release(void* begin) {
    auto& memory = get();
    {
      const std::scoped_lock lock(memory.mutex_);
      const auto size = memory.sizes_.extract(begin);  // absent for memory allocated earlier
      if (size) memory.live_bytes_ -= size.mapped();
    }
    memory.base_->raw_deleter()(begin);
  }

  void take_turn() {
    ++num_allocations_;
    std::function<void()> act;
    {
      const std::scoped_lock lock(mutex_);
      if (left_ == 0) act.swap(act_);
      --left_;
    }
    if (act) act();
  }

  c10::Allocator* base_;
  std::atomic<std::int64_t> live_bytes_ = 0, num_allocations_ = 0;
  std::mutex mutex_;
  std::unordered_map<void*, std::int64_t> sizes_;
  std::int64_t left_ = -1;
  std::function<void()> act_;
};

}  // namespace braid
