#include "app/machine/launched.h"

#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/gpus.h"

namespace braid {

bool is_first_rank() {
  const auto launch = read_launch();
  return !launch || launch->rank == 0;
}

bool is_launched() { return read_launch().has_value(); }

std::string device_of_rank(const std::string& device, const std::optional<Launch>& launch,
                           std::size_t num_visible) {
  if (!launch || device != "cuda") return device;
  if (num_visible == 1) return "cuda:0";
  require(num_visible == 0 || std::size_t(launch->local_rank) < num_visible, "rank ", launch->rank,
          " is number ", launch->local_rank + 1, " of the ranks on its host and sees ", num_visible,
          " GPUs: start at most ", num_visible, " ranks on a host, let each see the GPU that it ",
          "should use, or name devices with --devices");
  return text_of("cuda:", launch->local_rank);
}

std::string device_of_rank(const std::string& device) {
  return device_of_rank(device, read_launch(), find_gpus().size());
}

std::string name_of_rank() {
  const auto launch = read_launch();
  return launch && launch->rank > 0 ? text_of("rank ", launch->rank, ": ") : "";
}

void let_first_rank_end() { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }

}  // namespace braid
