// How many CPU threads a rank computes with.
#pragma once

#include "braid/braid.h"

namespace braid {

constexpr int kMostThreads = 1024;  // of a process

// options.threads, or else LibTorch's number for the process (OMP_NUM_THREADS, one per core),
// shared evenly by `num_ranks` ranks; at least one. Throws InputError.
int threads_per_rank(const PipelineOptions& options, int num_ranks);

// While it lives, the calling thread computes with `threads` threads.
class UseThreads {
 public:
  explicit UseThreads(int threads);
  ~UseThreads();
  UseThreads(const UseThreads&) = delete;
  UseThreads& operator=(const UseThreads&) = delete;

 private:
  int before_ = 1;
};

}  // namespace braid
