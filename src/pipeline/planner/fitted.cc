// A budget applied to options and a request.
#include "base/error.h"
#include "pipeline/devices.h"
#include "pipeline/engine.h"
#include "pipeline/planner/fit.h"

namespace braid {
namespace {

// By rank. "cuda" means each process's own device.
std::vector<std::string> devices_by_rank(const PipelineOptions& options, int ranks,
                                         bool are_threads) {
  auto names = device_names(options);
  if (names.size() == 1) names.resize(std::size_t(ranks), names.front());
  for (std::size_t r = 0; r < names.size() && !are_threads; ++r)
    if (names[r] == "cuda") names[r] += ":" + std::to_string(r);
  return names;
}

}  // namespace

Fitted fitted(const PipelineOptions& options, const Request& request) {
  const auto degrees = degrees_of(options.layout);
  const bool are_threads = options.layout.ranks == Ranks::kThreads || !read_launch();
  const FitPlace place{.grid = degrees,
                       .devices = devices_by_rank(options, degrees.product(), are_threads),
                       .are_threads = are_threads};
  const auto job = job_of_request(
      options, request,
      find_device(place.devices.front().substr(0, 4) == "cuda" ? device_names(options).front()
                                                               : "cpu"));
  Fitted result{.options = options,
                .tiling = VaeTiling::kAuto,
                .is_on_host = job.is_on_host,
                .fit = fit(job, place)};
  result.options.memory = result.fit.memory;
  result.tiling = result.fit.tiling;
  return result;
}

}  // namespace braid
