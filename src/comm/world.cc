#include "comm/world.h"

#include <ATen/ATen.h>

#include <mutex>

#include "base/error.h"
#include "comm/process/process_world.h"
#include "comm/thread.h"

namespace braid {
namespace {

// LibTorch computes exp, cos and others by MKL's functions of vectors, which ask at their first
// call which processor this is. MKL writes the answer down in two steps (in
// mkl_vml_serv_cpu_detect), and a thread that reads it between them takes a function of another
// accuracy: where two ranks began with the same exp, that of one was wrong by 7e-5 in 3 of 24,000
// processes. Here one thread asks, and the others wait for it.
void settle_vector_functions() {
  static std::once_flag once;
  std::call_once(once, [] { at::exp(at::zeros({1}, at::kFloat)); });
}

}  // namespace

World::World() { settle_vector_functions(); }

void World::fail_run(const std::exception_ptr& failure) {
  if (!has_all_ranks()) run([&](const Group&) { std::rethrow_exception(failure); });
  std::rethrow_exception(failure);
}

std::unique_ptr<World> make_world(const WorldOptions& options,
                                  const std::optional<Launch>& launch) {
  if (!launch) return std::make_unique<ThreadWorld>(options);
  require(options.size == launch->size, options.product, " = ", options.size, ", but ",
          launch->launcher, " started ", launch->size, " ranks",
          launch_advice(launch->size_variable));
  return std::make_unique<ProcessWorld>(*launch, options);
}

}  // namespace braid
