#include "pipeline/rank_threads.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "base/error.h"

namespace braid {

int threads_per_rank(const PipelineOptions& options, int num_ranks) {
  require(options.threads >= 0 && options.threads <= 4096,
          "the number of threads should lie between 0 and 4096, it is ", options.threads);
  const int threads = options.threads > 0 ? options.threads : at::get_num_threads();
  return std::max(1, threads / num_ranks);
}

// A thread takes the number that any thread of the process has set last, when it first asks for it
// and once more at its first loop: LibTorch remembers the former, its header the latter in our
// code. Both are made to happen before the number is set here, which is then this thread's for
// good.
UseThreads::UseThreads(int threads) {
  at::parallel_for(0, 1, 1, [](std::int64_t, std::int64_t) {});
  before_ = at::get_num_threads();
  if (threads != before_) at::set_num_threads(threads);
}

UseThreads::~UseThreads() {
  if (at::get_num_threads() != before_) at::set_num_threads(before_);
}

}  // namespace braid
