#include "comm/world.h"

#include "base/error.h"
#include "comm/process/process_world.h"
#include "comm/thread.h"

namespace braid {

std::unique_ptr<World> make_world(const WorldOptions& options,
                                  const std::optional<Launch>& launch) {
  if (!launch) return std::make_unique<ThreadWorld>(options);
  if (options.size != launch->size) {
    const auto sentence =
        text_of(options.product, " = ", options.size, ", but ", launch->launcher, " started ",
                launch->size, " ranks", launch_advice(launch->size_variable));
    if (launch->rank > 0) throw PeerRefused(sentence);  // the first rank says the same
    throw InputError(sentence);
  }
  return std::make_unique<ProcessWorld>(*launch, options);
}

}  // namespace braid
