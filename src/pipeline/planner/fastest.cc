#include "pipeline/planner/fastest.h"

#include <algorithm>

#include "base/error.h"

namespace braid {
namespace {

std::vector<DeviceSpec> specs_of(const std::vector<std::string>& names, const Host& host) {
  std::vector<DeviceSpec> devices;
  for (const auto& name : names) {
    const auto sharers =
        name == "cuda" ? 1.0 : double(std::count(names.begin(), names.end(), name));
    auto spec = host.spec(host.device(name));
    spec.memory /= sharers;
    spec.bfloat16_flops /= sharers;
    spec.float32_flops /= sharers;
    spec.memory_speed /= sharers;
    devices.push_back(std::move(spec));
  }
  return devices;
}

}  // namespace

PlannedLayout fastest_layout(const PlanJob& job, const std::vector<std::string>& names,
                             const Host& host) {
  auto devices = specs_of(names, host);
  const auto link = link_of(devices);
  auto layouts = plan_layouts(job, {.devices = std::move(devices), .link = link, .network = link});
  const auto& best = layouts.front();
  require(best.fits(), "no layout of ", names.size(), names.size() == 1 ? " rank" : " ranks",
          " fits: ", layout_name(best.grid), ": ", best.reason);
  return best;
}

}  // namespace braid
