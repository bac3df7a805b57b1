// How many CPU threads a rank computes with.
#pragma once

#include "braid/braid.h"

namespace braid {

// options.threads, or one a core, shared evenly by so many ranks; at least one. Throws InputError.
int threads_per_rank(const PipelineOptions& options, int num_ranks);

// Computes with so many threads on the calling thread while it lives.
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
