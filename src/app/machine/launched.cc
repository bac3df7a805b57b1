#include "app/machine/launched.h"

#include <chrono>
#include <optional>
#include <thread>

#include "base/error.h"
#include "comm/launch.h"
#include "comm/process/early_failure.h"

namespace braid {

namespace {

// Complaints are told by it, also those about the launcher's own variables.
std::optional<Launch> readable_launch() {
  try {
    return read_launch();
  } catch (const InputError&) {
    return {};
  }
}

}  // namespace

bool is_first_rank() {
  const auto launch = readable_launch();
  return !launch || launch->rank == 0;
}

std::string name_of_rank() {
  const auto launch = readable_launch();
  return launch && launch->rank > 0 ? text_of("rank ", launch->rank, ": ") : "";
}

// The first rank has told people when it comes here, and they wait for their prompt. The others
// wait for a first rank that may have to open its model before it meets them.
bool is_told_by_first_rank(const std::exception_ptr& failure) {
  const auto launch = readable_launch();
  if (!launch) return false;
  if (launch->by_mpi && launch->rank > 0) let_first_rank_end();
  const auto patience = std::chrono::seconds(launch->rank == 0 ? 3 : 5);
  return is_told_to_ranks(*launch, failure, patience);
}

void let_first_rank_end() { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }

}  // namespace braid
