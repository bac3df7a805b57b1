#include "app/print/info/machine_info.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/cpu/Utils.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <map>

#include "app/machine/bundled_model.h"
#include "app/print/info/preset_info.h"
#include "base/control_group.h"
#include "base/cpu.h"
#include "base/gpu_runtime.h"
#include "base/gpus.h"
#include "base/text_stream.h"
#include "braid/braid.h"
#include "comm/device/device_link.h"
#include "ops/attention_kernel.h"
#include "ops/kernels/products.h"

namespace braid {
namespace {

// The first lines of LibTorch's own description; the rest are compiler flags.
std::vector<std::string> libtorch_build() {
  TextReader config(at::show_config());
  std::vector<std::string> lines;
  for (std::string line; std::getline(config, line);) {
    const auto begin = line.find("- ");
    if (begin == line.npos || line.find("Build settings:") != line.npos) continue;
    lines.push_back(line.substr(begin + 2));
  }
  return lines;
}

OrderedJson cpu_info() {
  const auto unordered = at::cpu::get_cpu_capabilities();
  const std::map<std::string, c10::IValue> known(unordered.begin(), unordered.end());
  OrderedJson cpu;
  const auto text = [&](const char* key) {
    const auto it = known.find(key);
    return it != known.end() && it->second.isString() ? it->second.toStringRef() : "unknown";
  };
  cpu["name"] = text("cpu_name");
  cpu["architecture"] = text("architecture");
  if (const auto cores = known.find("num_physical_cores"); cores != known.end())
    cpu["cores"] = cores->second.toInt();
  cpu["threads"] = at::get_num_threads();
  cpu["kernels"] = at::get_cpu_capability();
  cpu["isa"] = isa_name(read_cpu().isa());
  cpu["products"] = ops::name_of_best_products();
  auto features = OrderedJson::array();
  for (const auto& [name, value] : known)
    if (value.isBool() && value.toBool()) features.push_back(name);
  cpu["features"] = features;
  return cpu;
}

OrderedJson gpu_info(int index) {
  const auto [free, total] =
      c10::getDeviceAllocator(at::kCUDA)->getMemoryInfo(c10::DeviceIndex(index));
  return {{"memory_bytes", total},
          {"free_bytes", free},
          {"bus_id", gpu_runtime::bus_id(index)},
          {"attention", ops::attention_on({at::kCUDA, c10::DeviceIndex(index)})}};
}

OrderedJson devices() {
  OrderedJson devices;
  const auto group = read_control_group();
  devices["cpu"] = {{"memory_bytes", usable_memory(group)},
                    {"free_bytes", available_memory(group)}};
  if (!c10::impl::hasDeviceGuardImpl(at::kCUDA)) return devices;
  const int count = c10::impl::getDeviceGuardImpl(at::kCUDA)->deviceCount();
  if (count > 0) at::globalContext().lazyInitDevice(at::kCUDA);
  for (int i = 0; i < count; ++i) devices["cuda:" + std::to_string(i)] = gpu_info(i);
  return devices;
}

OrderedJson link_between_gpus() {
  const auto name = device_link_name();
  return name.empty() ? OrderedJson() : OrderedJson(name);
}

OrderedJson bundled() {
  const auto model = bundled_model_if_there();
  return model.empty() ? OrderedJson() : OrderedJson(model.string());
}

}  // namespace

OrderedJson machine_info() {
  return {{"version", version()},
          {"libtorch", {{"version", TORCH_VERSION}, {"build", libtorch_build()}}},
          {"cpu", cpu_info()},
          {"devices", devices()},
          {"gpus", gpus_info()},
          {"link_between_gpus", link_between_gpus()},
          {"environment", environment_info()},
          {"bundled_model", bundled()}};
}

}  // namespace braid
