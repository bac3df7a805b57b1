// What tensors on LibTorch's meta device would take if they had memory: an allocator that only
// counts, by rank.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace braid {

// Work counted by one rank. A fused operation (ops/record.h) counts for what it returns and keeps:
// its definition's temporaries, which kernels do not have, are left out.
class DryMeter {
 public:
  DryMeter();
  DryMeter(const DryMeter&) = delete;
  DryMeter& operator=(const DryMeter&) = delete;

  std::int64_t live() const;  // bytes of tensors that exist
  std::int64_t peak() const;  // the most of them since peak_from_here()
  void peak_from_here();
  std::int64_t flops() const;  // of dense layers and attention, multiply and add

  struct State;

  // While it lives, the thread's allocations on the meta device and its operations count here.
  class Here {
   public:
    explicit Here(const DryMeter& meter);
    ~Here();
    Here(const Here&) = delete;
    Here& operator=(const Here&) = delete;

   private:
    std::shared_ptr<State> before_;
    std::uint64_t callback_;
  };

 private:
  std::shared_ptr<State> state_;
};

}  // namespace braid
