#include "app/machine/launched.h"

#include <chrono>
#include <thread>

#include "base/error.h"
#include "comm/launch.h"

namespace braid {

bool is_first_rank() {
  const auto launch = read_launch();
  return !launch || launch->rank == 0;
}

bool is_launched() { return read_launch().has_value(); }

std::string name_of_rank() {
  const auto launch = read_launch();
  return launch && launch->rank > 0 ? text_of("rank ", launch->rank, ": ") : "";
}

void let_first_rank_end() { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }

}  // namespace braid
