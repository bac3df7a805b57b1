#include "app/machine/launched.h"

#include <chrono>
#include <optional>
#include <thread>

#include "base/error.h"
#include "comm/launch.h"

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

bool is_launched() { return read_launch().has_value(); }

std::string name_of_rank() {
  const auto launch = readable_launch();
  return launch && launch->rank > 0 ? text_of("rank ", launch->rank, ": ") : "";
}

void let_first_rank_end() { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }

}  // namespace braid
