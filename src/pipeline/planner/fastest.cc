#include "pipeline/planner/fastest.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>

#include "base/error.h"
#include "comm/launch.h"
#include "pipeline/devices.h"

namespace braid {
namespace {

// A GPU of this machine. Layouts on identical devices are ranked by what they compute and move, so
// any one GPU's figures will do.
DeviceSpec this_gpu(at::Device device) {
  auto spec = devices_named("the device", "a100").front();
  spec.name = device.str();
  spec.link = "pcie4";
  const auto [free, total] = c10::getDeviceAllocator(device.type())->getMemoryInfo(device.index());
  // Ranks that a launcher started choose for themselves, and would find what others hold by then.
  spec.memory = double(read_launch() ? total : free);
  return spec;
}

std::vector<DeviceSpec> devices_here(const std::vector<std::string>& names) {
  std::vector<DeviceSpec> devices;
  for (const auto& name : names) {
    const auto device = find_device(name);
    const auto sharers =
        name == "cuda" ? 1.0 : double(std::count(names.begin(), names.end(), name));
    auto spec = device.is_cpu() ? devices_named("the device", "cpu").front() : this_gpu(device);
    spec.memory /= sharers;
    spec.bfloat16_flops /= sharers;
    spec.float32_flops /= sharers;
    spec.memory_speed /= sharers;
    devices.push_back(std::move(spec));
  }
  return devices;
}

}  // namespace

PlannedLayout fastest_layout(const PipelineOptions& options, const Request& request,
                             const std::vector<std::string>& names) {
  auto devices = devices_here(names);
  const auto link = link_of(devices);
  const auto job = job_of_request(options, request, find_device(names.front()));
  auto layouts = plan_layouts(job, {.devices = std::move(devices), .link = link, .network = link});
  const auto& best = layouts.front();
  require(best.fits(), "no layout of ", names.size(), names.size() == 1 ? " rank" : " ranks",
          " fits: ", layout_name(best.grid), ": ", best.reason);
  return best;
}

}  // namespace braid
