#include "pipeline/devices/devices.h"

#include <ATen/ATen.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/control_group.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/gpu_runtime.h"
#include "base/gpus.h"
#include "ops/gpu/architectures.h"
#include "pipeline/devices/cached_memory.h"

namespace braid {
namespace {

// "0-3" -> 0, 1, 2, 3
std::optional<std::vector<int>> numbers_of(const std::string& range) {
  const auto number = [](std::string_view text) -> std::optional<int> {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_whole = error == std::errc() && end == text.data() + text.size();
    if (!is_whole || value < 0 || value >= kMostRanks) return {};
    return value;
  };
  const auto dash = range.find('-');
  if (dash == std::string::npos) return {};
  const auto first = number(std::string_view(range).substr(0, dash));
  const auto last = number(std::string_view(range).substr(dash + 1));
  if (!first || !last || *first > *last) return {};
  std::vector<int> numbers;
  for (int i = *first; i <= *last; ++i) numbers.push_back(i);
  return numbers;
}

}  // namespace

int index_of_gpu(const std::string& name, const std::function<int()>& count) {
  const bool has_index = name.starts_with("cuda:") && name.size() > 5 && name.size() < 9 &&
                         name.find_first_not_of("0123456789", 5) == std::string::npos;
  require(name == "cuda" || has_index, "the device should be cpu, cuda or cuda:N, it is '", name,
          "'");
  const int index = has_index ? std::stoi(name.substr(5)) : 0, all = count();
  require(index < all, "there is no device ", name, ": ", all, " found");
  return index;
}

// Otherwise a model would be loaded before its first kernel fails.
void require_kernels(const std::string& name, const std::string& architecture,
                     const std::string& compiled) {
  if (ops::gpu::runs_kernels(architecture, compiled)) return;
  const auto* const option =
      architecture.starts_with("gfx") ? "CMAKE_HIP_ARCHITECTURES" : "CMAKE_CUDA_ARCHITECTURES";
  const auto gpu = gpu_named(name);
  throw InputError(text_of(name, " is of architecture ", architecture,
                           gpu && !gpu->name.empty() ? " (" + gpu->name + ")" : "",
                           ", for which this build has no kernels: it has some for ", compiled,
                           ". Build with -D", option, "=", ops::gpu::entry_for(architecture),
                           ", or name another device"));
}

at::Device find_device(const std::string& name) {
  if (name == "cpu") return at::kCPU;
  const int index = index_of_gpu(name, [&] {
    require(c10::impl::hasDeviceGuardImpl(at::kCUDA), "there is no device ", name,
            ": this LibTorch has no GPU support (set BRAID_TORCH to one that has)");
    return int(c10::impl::getDeviceGuardImpl(at::kCUDA)->deviceCount());
  });
  require_kernels(name, gpu_runtime::architecture(index), ops::gpu::compiled_architectures());
  at::globalContext().lazyInitDevice(at::kCUDA);  // otherwise its allocator keeps no statistics
  return at::Device(at::kCUDA, at::DeviceIndex(index));
}

std::vector<std::string> device_names(const PipelineOptions& options) {
  if (options.devices.empty()) return {options.device};
  std::vector<std::string> names;
  for (const auto& entry : options.devices) {
    const auto colon = entry.find(':');
    const auto range = colon == std::string::npos ? "" : entry.substr(colon + 1);
    const auto numbers = numbers_of(range);
    if (!numbers) names.push_back(entry);
    for (const int i : numbers.value_or(std::vector<int>()))
      names.push_back(entry.substr(0, colon + 1) + std::to_string(i));
  }
  require(names.size() <= kMostRanks, "there are ", names.size(), " devices, at most ", kMostRanks,
          " can be used");
  return names;
}

std::vector<std::string> names_of_ranks(const PipelineOptions& options, std::size_t num_ranks) {
  auto names = device_names(options);
  if (names.size() == 1) names.resize(num_ranks, names.front());
  return names;
}

std::vector<std::string> names_by_rank(const PipelineOptions& options, std::size_t num_ranks,
                                       const std::optional<Launch>& launch) {
  auto names = names_of_ranks(options, num_ranks);
  for (std::size_t r = 0; r < names.size() && launch; ++r)
    if (names[r] == "cuda") names[r] += ":" + std::to_string(r);
  return names;
}

std::vector<std::string> names_on_host(const PipelineOptions& options, std::size_t num_gpus,
                                       const std::optional<Launch>& launch) {
  auto names = device_names(options);
  if (!launch || names.front() != "cuda") return names;
  names.assign(std::min(num_gpus, std::size_t(launch->size)), "cuda:");
  for (std::size_t i = 0; i < names.size(); ++i) names[i] += std::to_string(i);
  return names;
}

std::string list_of_devices(const PipelineOptions& options) {
  std::string list;
  for (const auto& name : device_names(options)) list += (list.empty() ? "" : ",") + name;
  return list;
}

std::vector<at::Device> devices_of(const PipelineOptions& options, const Degrees& degrees,
                                   const std::function<at::Device(const std::string&)>& find) {
  std::vector<at::Device> devices;
  const auto num_ranks = std::size_t(degrees.product());
  for (const auto& name : names_of_ranks(options, num_ranks)) devices.push_back(find(name));
  require(devices.size() == num_ranks, to_string(degrees), " = ", num_ranks, ", but there are ",
          devices.size(), " devices: the degrees of tensor, ring, Ulysses, CFG, pipeline and ",
          "data parallelism should multiply to the number of devices");
  return devices;
}

void wait_for(at::Device device) {
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
}

std::optional<std::int64_t> free_gpu_bytes(const std::string& name) {
  if (!name.starts_with("cuda") || !c10::impl::hasDeviceGuardImpl(at::kCUDA)) return {};
  if (c10::impl::getDeviceGuardImpl(at::kCUDA)->deviceCount() == 0) return {};
  return free_memory(find_device(name), 1).free_bytes;
}

StageMemory free_memory(at::Device device, int num_ranks) {
  if (device.is_cpu() || device.is_meta())
    return {.is_host = true, .free_bytes = std::int64_t(available_memory()) / num_ranks};
  const auto [free, total] = c10::getDeviceAllocator(device.type())->getMemoryInfo(device.index());
  (void)total;
  return {.is_host = false, .free_bytes = (std::int64_t(free) + cached_bytes(device)) / num_ranks};
}

at::ScalarType choose_dtype(Dtype asked, at::ScalarType stored, at::Device device) {
  switch (asked) {
    case Dtype::kFloat32:
      return at::kFloat;
    case Dtype::kBfloat16:
      return at::kBFloat16;
    case Dtype::kFloat16:
      return at::kHalf;
    case Dtype::kAuto:
      break;
  }
  if (stored == at::kFloat || stored == at::kDouble) return at::kFloat;
  if (!device.is_cpu()) return stored == at::kHalf ? at::kHalf : at::kBFloat16;
  return stored != at::kHalf && read_cpu().is_fast_in_bfloat16() ? at::kBFloat16 : at::kFloat;
}

}  // namespace braid
