#include "comm/world.h"

#include "base/error.h"
#include "comm/process/process_world.h"
#include "comm/thread.h"

namespace braid {

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
