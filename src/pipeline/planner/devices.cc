#include "pipeline/planner/devices.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/control_group.h"
#include "base/cpu.h"
#include "base/error.h"

namespace braid {
namespace {

constexpr double kGB = 1e9, kGiB = 1024.0 * 1024 * 1024, kTera = 1e12;
constexpr int kMaxDevices = 1024;

// Large matrix products reach 0.5 to 0.7 of a tensor core's peak (FLUX.1-dev on one H200: 0.57). On
// RDNA3 LibTorch reaches 0.2 (FLUX.1-dev on one RX 7800 XT: 5.1 s per step).
constexpr double kTensorCores = 0.6, kRdna3 = 0.2, kCpu = 0.5;

// Peaks are from the makers' data sheets; memory sizes as sold are powers of two.
const std::vector<DeviceSpec>& known_devices() {
  const auto t = kTera;
  static const std::vector<DeviceSpec> kKnown = {
      {"rtx-3090", 24 * kGiB, 71 * t, 35.6 * t, 936 * kGB, kTensorCores, "pcie4", false},
      {"rtx-4090", 24 * kGiB, 165.2 * t, 82.6 * t, 1008 * kGB, kTensorCores, "pcie4", false},
      {"rtx-5090", 32 * kGiB, 209.5 * t, 104.8 * t, 1792 * kGB, kTensorCores, "pcie5", false},
      {"l4", 24 * kGiB, 121 * t, 30.3 * t, 300 * kGB, kTensorCores, "pcie4"},
      {"l20", 48 * kGiB, 119.5 * t, 59.8 * t, 864 * kGB, kTensorCores, "pcie4"},
      {"l40s", 48 * kGiB, 362 * t, 91.6 * t, 864 * kGB, kTensorCores, "pcie4"},
      {"a100-40gb", 40 * kGiB, 312 * t, 19.5 * t, 1555 * kGB, kTensorCores, "nvlink3"},
      {"a100", 80 * kGiB, 312 * t, 19.5 * t, 2039 * kGB, kTensorCores, "nvlink3"},
      {"h100", 80 * kGiB, 989 * t, 67 * t, 3350 * kGB, kTensorCores, "nvlink"},
      {"h200", 141 * kGB, 989 * t, 67 * t, 4800 * kGB, kTensorCores, "nvlink"},
      {"b200", 180 * kGB, 2250 * t, 75 * t, 8000 * kGB, kTensorCores, "nvlink5"},
      {"rx-7800-xt", 16 * kGiB, 74.6 * t, 37.3 * t, 624 * kGB, kRdna3, "pcie4", false},
      {"rx-7900-xtx", 24 * kGiB, 122.8 * t, 61.4 * t, 960 * kGB, kRdna3, "pcie4", false},
      {"mi250x", 128 * kGiB, 383 * t, 47.9 * t, 3277 * kGB, kTensorCores, "xgmi"},
      {"mi300x", 192 * kGiB, 1307 * t, 163.4 * t, 5300 * kGB, kTensorCores, "xgmi"},
  };
  return kKnown;
}

// One direction of sixteen PCIe lanes, of all NVLink or xGMI links of a device, or of 100 Gb/s
// Ethernet.
struct KnownLink {
  const char* name;
  double peak, latency;
};
const KnownLink kLinks[] = {
    {"pcie3", 15.75 * kGB, 10e-6}, {"pcie4", 31.5 * kGB, 10e-6},    {"pcie5", 63 * kGB, 10e-6},
    {"nvlink3", 300 * kGB, 5e-6},  {"nvlink", 450 * kGB, 5e-6},     {"nvlink5", 900 * kGB, 5e-6},
    {"xgmi", 448 * kGB, 5e-6},     {"ethernet", 12.5 * kGB, 30e-6}, {"memory", 10 * kGB, 20e-6},
};
constexpr double kLinkReached = 0.8;  // reached by collectives of many megabytes

// FLOP/s of a core at 2.5 GHz: two fused multiply-adds per cycle of 256 or 512 bits of float32; AMX
// multiplies tiles.
DeviceSpec this_machine(int shared_by) {
  const auto& cpu = read_cpu();
  const double cores = usable_cpus();
  const double float32 = cores * 2.5e9 * (cpu.has("avx512f") ? 64 : cpu.has("avx2") ? 32 : 8);
  const double bfloat16 = cpu.has("amx_bf16")    ? cores * 2.5e9 * 1024
                          : cpu.has_fast_pairs() ? 2 * float32
                                                 : float32;
  const double speed = std::min(cores, 8.0) * 10 * kGB;
  return {"cpu",
          double(usable_memory()) / shared_by,
          bfloat16 / shared_by,
          float32 / shared_by,
          speed / shared_by,
          kCpu,
          "memory"};
}

std::string names_of_devices() {
  std::string names = "cpu";
  for (const auto& device : known_devices()) names += ", " + device.name;
  return names;
}

struct Several {
  int count;
  std::string name;
};

// "4xh100" or "h100"
Several read_several(const std::string& flag, const std::string& text) {
  int count = 1;
  const auto* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, count);
  const bool has_count = error == std::errc() && stopped != end && *stopped == 'x';
  const std::string name = has_count ? std::string(stopped + 1, end) : text;
  if (!has_count) count = 1;
  require(count >= 1 && count <= kMaxDevices, flag, " should name 1 to ", kMaxDevices,
          " devices, it is '", text, "'");
  return {count, name};
}

const DeviceSpec& device_named(const std::string& flag, const std::string& name) {
  const auto& known = known_devices();
  const auto it =
      std::find_if(known.begin(), known.end(), [&](const DeviceSpec& d) { return d.name == name; });
  require(it != known.end(), flag, " should name devices such as 4xrtx-4090, '", name,
          "' is not known; known are ", names_of_devices());
  return *it;
}

std::optional<double> number_of(const std::string& text, std::string& unit) {
  double value = 0;
  const auto* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || !std::isfinite(value) || value <= 0) return {};
  unit = std::string(stopped, end);
  return value;
}

}  // namespace

std::vector<DeviceSpec> devices_named(const std::string& flag, const std::string& text) {
  std::vector<Several> groups;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    groups.push_back(read_several(flag, text.substr(begin, end - begin)));
    begin = end + 1;
  }
  int total = 0, cpus = 0;
  for (const auto& [count, name] : groups) {
    total += count;
    if (name == "cpu") cpus += count;
  }
  require(total <= kMaxDevices, flag, " should name at most ", kMaxDevices, " devices, it names ",
          total);
  std::vector<DeviceSpec> devices;
  for (const auto& [count, name] : groups) {
    const auto spec = name == "cpu" ? this_machine(cpus) : device_named(flag, name);
    devices.insert(devices.end(), std::size_t(count), spec);
  }
  return devices;
}

LinkSpec link_named(const std::string& flag, const std::string& text, bool through_host) {
  std::string names;
  for (const auto& link : kLinks) {
    if (link.name == text)
      return {text, link.peak * kLinkReached * (through_host ? 0.5 : 1), link.latency};
    names += std::string(link.name) + ", ";
  }
  std::string unit;
  const auto speed = number_of(text, unit);
  require(speed && (unit.empty() || unit == "GB/s"), flag, " should be one of ", names,
          "or a number of GB/s, it is '", text, "'");
  return {text, *speed * kGB, 10e-6};
}

LinkSpec link_of(const std::vector<DeviceSpec>& devices) {
  std::optional<LinkSpec> slowest;
  for (const auto& device : devices) {
    const auto link = link_named("the link", device.link, !device.talks_to_peers);
    if (!slowest || link.speed < slowest->speed) slowest = link;
  }
  return *slowest;
}

double host_speed(const DeviceSpec& device) {
  const bool is_hosts = device.link.starts_with("pcie") || device.link == "memory";
  return is_hosts ? link_named("the link", device.link, false).speed : kHostSpeed;
}

double bytes_named(const std::string& flag, const std::string& text) {
  std::string unit;
  const auto value = number_of(text, unit);
  const double scale = unit == "GB"    ? kGB
                       : unit == "GiB" ? kGiB
                       : unit == "MB"  ? 1e6
                       : unit == "MiB" ? 1024.0 * 1024
                                       : 0;
  require(value && scale > 0, flag, " should be an amount of memory such as 16GB, it is '", text,
          "'");
  return *value * scale;
}

}  // namespace braid
