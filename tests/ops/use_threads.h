#pragma once

#include <ATen/Parallel.h>

namespace braid {

// Sets LibTorch's number of threads for a while.
class UseThreads {
 public:
  explicit UseThreads(int count) { at::set_num_threads(count); }
  ~UseThreads() { at::set_num_threads(before_); }

 private:
  int before_ = at::get_num_threads();
};

}  // namespace braid
