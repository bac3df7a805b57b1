#include "app/machine/hardware.h"

#include <ATen/cpu/Utils.h>

#include "base/control_group.h"
#include "base/gpus.h"
#include "base/readable_bytes.h"
#include "pipeline/devices/devices.h"

namespace braid {

std::int64_t free_bytes_of(const std::string& device) {
  return device == "cpu" ? free_host_bytes() : free_gpu_bytes(device).value_or(0);
}

std::int64_t free_host_bytes() { return std::int64_t(available_memory()); }

std::string cpu_name() {
  const auto known = at::cpu::get_cpu_capabilities();
  const auto it = known.find("cpu_name");
  return it != known.end() && it->second.isString() ? it->second.toStringRef() : "unknown";
}

std::string name_of_machine(const std::string& device) {
  if (device == "cpu") return cpu_name();
  const auto gpu = gpu_named(device);
  return gpu ? gpu->architecture + ", " + readable_bytes(double(gpu->bytes)) : "unknown";
}

}  // namespace braid
