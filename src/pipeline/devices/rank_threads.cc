#include "pipeline/devices/rank_threads.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace braid {

int threads_per_rank(const PipelineOptions& options, int num_ranks) {
  const int threads = options.threads > 0 ? options.threads : at::get_num_threads();
  return std::max(1, threads / num_ranks);
}

// A thread adopts the process's most recent thread count when it first asks for it, and again at
// its first parallel loop. LibTorch caches the former; its header caches the latter in our code.
// Both are triggered here before the count is set, so it stays this thread's for good.
UseThreads::UseThreads(int threads) {
  at::parallel_for(0, 1, 1, [](std::int64_t, std::int64_t) {});
  before_ = at::get_num_threads();
  if (threads != before_) at::set_num_threads(threads);
}

UseThreads::~UseThreads() {
  if (at::get_num_threads() != before_) at::set_num_threads(before_);
}

}  // namespace braid
