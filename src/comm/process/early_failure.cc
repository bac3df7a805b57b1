#include "comm/process/early_failure.h"

#include "comm/fate.h"
#include "comm/process/process_world.h"
#include "comm/process/rendezvous.h"

namespace braid {

// Each rank hears of one failure. Another one than its own leaves its own untold.
bool is_told_to_ranks(const Launch& launch, const std::exception_ptr& failure,
                      std::chrono::milliseconds patience) {
  if (launch.by_mpi || have_met_over_sockets()) return false;
  try {
    const ProcessWorld world(launch,
                             {.size = launch.size, .meeting = patience, .failure = failure});
  } catch (const PeerFailed& heard) {
    return std::string(heard.what()).ends_with(message_of(failure));
  } catch (const std::exception&) {
    return false;  // the first rank's own failure, or nobody came
  }
  return false;
}

}  // namespace braid
