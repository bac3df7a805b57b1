// Reports an operation, by name and amount of work, to LibTorch's profiler callbacks
// (torch.profiler's traces, bench/report). Without a listener it costs a few nanoseconds.
#pragma once

#include <ATen/record_function.h>

#include <initializer_list>
#include <vector>

namespace braid::ops {

// Lives as long as the operation runs. Names begin with "braid::"; `sizes` depend on the name:
//   linear, and those that begin with it  rows, inputs, outputs
//   attention                             batch x heads, queries, keys, head width
//   others                                bytes read and written at least
class Record {
 public:
  Record(const char* name, std::initializer_list<std::int64_t> sizes)
      : guard_(at::RecordScope::FUNCTION) {
    if (!guard_.isActive()) return;
    sizes_.assign(sizes.begin(), sizes.end());
    guard_.before(name, c10::ArrayRef<const c10::IValue>(sizes_.data(), sizes_.size()));
  }

 private:
  std::vector<c10::IValue> sizes_;
  at::RecordFunction guard_;
};

}  // namespace braid::ops
