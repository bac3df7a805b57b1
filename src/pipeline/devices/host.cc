#include "pipeline/devices/host.h"

#include <c10/core/CachingDeviceAllocator.h>

#include "base/cache_folder.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/readable_bytes.h"
#include "pipeline/devices/devices.h"

namespace braid {
namespace {

DeviceSpec spec_named(const char* name) { return devices_named("the device", name).front(); }

std::int64_t memory_of(at::Device device) {
  const auto [free, all] = c10::getDeviceAllocator(device.type())->getMemoryInfo(device.index());
  (void)free;
  return std::int64_t(all);
}

// Layouts on identical devices are ranked by what they compute and move, so any one GPU's speeds
// will do.
DeviceSpec spec_here(at::Device device) {
  if (device.is_cpu()) return spec_named("cpu");
  auto spec = spec_named("a100");
  spec.name = device.str();
  spec.link = "pcie4";
  spec.memory = double(read_launch() ? memory_of(device) : free_memory(device, 1).free_bytes);
  return spec;
}

std::optional<Gpu> gpu_here(at::Device device) {
  return device.is_cpu() ? std::nullopt : gpu_named(device.str());
}

std::optional<DeviceSpec> card_here(at::Device device) {
  const auto gpu = gpu_here(device);
  return gpu ? device_of_card(gpu->name, gpu->architecture, double(gpu->bytes)) : std::nullopt;
}

std::string kind_here(at::Device device) {
  if (device.is_cpu()) return read_cpu().model.empty() ? "cpu" : read_cpu().model;
  const auto gpu = gpu_here(device);
  if (!gpu) return device.str();
  return (gpu->name.empty() ? gpu->architecture : gpu->name) + ", " +
         readable_bytes(double(gpu->bytes));
}

std::optional<double> free_here(const std::string& device) {
  if (read_launch()) return {};
  const auto bytes = free_gpu_bytes(device);
  return bytes ? std::optional(double(*bytes)) : std::nullopt;
}

}  // namespace

Host this_host() {
  return {.launch = read_launch(),
          .gpus = find_gpus,
          .device = find_device,
          .spec = spec_here,
          .free_bytes = free_here,
          .card = card_here,
          .kind = kind_here,
          .measure = measure_product,
          .speeds = cache_folder("speeds")};
}

Host described_host(const std::vector<DeviceSpec>& devices) {
  std::vector<DeviceSpec> cards;
  for (const auto& device : devices)
    if (device.name != "cpu") cards.push_back(device);
  const auto gpus = [cards] {
    std::vector<Gpu> all;
    for (const auto& card : cards)
      all.push_back({.architecture = card.name, .bytes = std::uint64_t(card.memory)});
    return all;
  };
  const auto device = [count = int(cards.size())](const std::string& name) -> at::Device {
    if (name == "cpu") return at::kCPU;
    return at::Device(at::kCUDA, at::DeviceIndex(index_of_gpu(name, [count] { return count; })));
  };
  const auto spec = [cards](at::Device of) {
    return of.is_cpu() ? spec_named("cpu") : cards.at(std::size_t(of.index()));
  };
  const auto card = [spec](at::Device of) {
    return of.is_cpu() ? std::nullopt : std::optional(spec(of));
  };
  return {.launch = {},
          .gpus = gpus,
          .device = device,
          .spec = spec,
          .free_bytes = {},
          .card = card,
          .kind = [spec](at::Device of) { return spec(of).name; }};
}

std::string device_of_rank(const std::string& device, const Host& host) {
  if (!host.launch || device != "cuda") return device;
  return device_of_rank(device, host.launch, host.gpus().size());
}

std::string device_of_rank(const std::string& device, const std::optional<Launch>& launch,
                           std::size_t num_visible) {
  if (!launch || device != "cuda") return device;
  if (num_visible == 1) return "cuda:0";
  require(num_visible == 0 || std::size_t(launch->local_rank) < num_visible, "rank ", launch->rank,
          " is number ", launch->local_rank + 1, " of the ranks on its host and sees ", num_visible,
          " GPUs: start at most ", num_visible, " ranks on a host, let each see the GPU that it ",
          "should use, or name the devices");
  return text_of("cuda:", launch->local_rank);
}

}  // namespace braid
