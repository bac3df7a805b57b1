#include "serve/http/descriptors.h"

#include <sys/resource.h>

#include <algorithm>

namespace braid::serve {

int connections_within(std::uint64_t descriptors, int wanted) {
  constexpr std::uint64_t kForFiles = 128;
  const auto spare = descriptors > kForFiles ? descriptors - kForFiles : 0;
  return int(std::min(std::max(spare, descriptors / 4), std::uint64_t(wanted)));
}

// The limit is raised no further than needed: programs that close all descriptors before they start
// another one take long below a limit of a billion, which containers have.
int room_for_connections(int wanted) {
  constexpr rlim_t kForManyFiles = 1024;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  const auto needed = std::min(rlim_t(wanted) + kForManyFiles, limit.rlim_max);
  const rlimit raised{.rlim_cur = needed, .rlim_max = limit.rlim_max};
  if (limit.rlim_cur < needed && ::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  return connections_within(limit.rlim_cur, wanted);
}

}  // namespace braid::serve
