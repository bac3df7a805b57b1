#include "pipeline/devices/specs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/ascii.h"
#include "base/control_group.h"
#include "base/cpu.h"
#include "base/error.h"
#include "comm/mesh.h"

namespace braid {
namespace {

constexpr double kGB = 1e9, kGiB = 1024.0 * 1024 * 1024, kTera = 1e12;

// What devices reach of their data sheets: the one place where a step's time is calibrated.
// docs/parallelism.md has the figures.
struct Reached {
  double products, attention, memory, gap, float8;
  bool multiplies_int8 = true;  // as the function of base/gpus.h says
};

// Kernels of a recorded step are 1.1 us apart, and those bound by memory take 1.5 us more than
// their bytes; the gap is near the mean of both.
constexpr double kGap = 2e-6;
// FLUX.1-dev on one H100 takes 128.85 ms a step in sglang, by kernels that Braid calls as well:
// cuBLASLt's products, 650 TFLOP/s with what the last wave of blocks loses, and cuDNN's attention,
// 590. Float8 products lose the same.
constexpr Reached kHopper{.661, .597, .855, kGap, .578};
// Products and FlashAttention 2 reach 0.5 to 0.7 of other tensor cores' peak.
constexpr Reached kTensorCores{.6, .6, .85, kGap, .5};
// LibTorch reaches 0.2 on RDNA3 (FLUX.1-dev on one RX 7800 XT: 5.1 s per step).
constexpr Reached kRdna3{.2, .2, .85, kGap, 0, false};
constexpr double kCpu = 0.5;

enum class Peers { kDirect, kThroughHost };

DeviceSpec gpu(const char* name, double memory, double bfloat16, double float32, double float8,
               double memory_speed, const Reached& reached, const char* link,
               Peers peers = Peers::kDirect) {
  return {.name = name,
          .memory = memory,
          .bfloat16_flops = bfloat16 * kTera,
          .float32_flops = float32 * kTera,
          .memory_speed = memory_speed * kGB,
          .reached = reached.products,
          .link = link,
          .talks_to_peers = peers == Peers::kDirect,
          .attention_reached = reached.attention,
          .memory_reached = reached.memory,
          .gap = reached.gap,
          .float8_flops = float8 * kTera,
          .float8_reached = reached.float8,
          .multiplies_int8 = reached.multiplies_int8};
}

// Peaks are from the makers' data sheets, in TFLOP/s and GB/s; memory sizes as sold are powers of
// two. Float8 counts where gpu::multiplies_float8() has it: on NVIDIA from compute capability 8.9.
const std::vector<DeviceSpec>& known_devices() {
  constexpr auto kHost = Peers::kThroughHost;
  static const std::vector<DeviceSpec> kKnown = {
      gpu("rtx-3060", 12 * kGiB, 25.6, 12.8, 0, 360, kTensorCores, "pcie4", kHost),
      gpu("rtx-3090", 24 * kGiB, 71, 35.6, 0, 936, kTensorCores, "pcie4", kHost),
      gpu("rtx-4060-ti", 16 * kGiB, 44.1, 22.1, 88.2, 288, kTensorCores, "pcie4x8", kHost),
      gpu("rtx-4070", 12 * kGiB, 58.3, 29.1, 116.6, 504, kTensorCores, "pcie4", kHost),
      gpu("rtx-4080", 16 * kGiB, 97.5, 48.7, 194.9, 717, kTensorCores, "pcie4", kHost),
      gpu("rtx-4090", 24 * kGiB, 165.2, 82.6, 330.3, 1008, kTensorCores, "pcie4", kHost),
      gpu("rtx-5060-ti", 16 * kGiB, 47.4, 23.7, 94.9, 448, kTensorCores, "pcie5x8", kHost),
      gpu("rtx-5070-ti", 16 * kGiB, 87.9, 43.9, 175.8, 896, kTensorCores, "pcie5", kHost),
      gpu("rtx-5090", 32 * kGiB, 209.5, 104.8, 419, 1792, kTensorCores, "pcie5", kHost),
      gpu("l4", 24 * kGiB, 121, 30.3, 242.5, 300, kTensorCores, "pcie4"),
      gpu("l20", 48 * kGiB, 119.5, 59.8, 239, 864, kTensorCores, "pcie4"),
      gpu("l40s", 48 * kGiB, 362, 91.6, 733, 864, kTensorCores, "pcie4"),
      gpu("a100-40gb", 40 * kGiB, 312, 19.5, 0, 1555, kTensorCores, "nvlink3"),
      gpu("a100", 80 * kGiB, 312, 19.5, 0, 2039, kTensorCores, "nvlink3"),
      gpu("h100", 80 * kGiB, 989, 67, 1979, 3350, kHopper, "nvlink"),
      gpu("h200", 141 * kGB, 989, 67, 1979, 4800, kHopper, "nvlink"),
      gpu("b200", 180 * kGB, 2250, 75, 4500, 8000, kTensorCores, "nvlink5"),
      gpu("rx-7600", 8 * kGiB, 43.5, 21.8, 0, 288, kRdna3, "pcie4x8", kHost),
      gpu("rx-7800-xt", 16 * kGiB, 74.6, 37.3, 0, 624, kRdna3, "pcie4", kHost),
      gpu("rx-7900-xtx", 24 * kGiB, 122.8, 61.4, 0, 960, kRdna3, "pcie4", kHost),
      gpu("mi250x", 128 * kGiB, 383, 47.9, 0, 3277, kTensorCores, "xgmi"),
      gpu("mi300x", 192 * kGiB, 1307, 163.4, 0, 5300, kTensorCores, "xgmi"),
  };
  return kKnown;
}

// One direction of sixteen PCIe lanes (or eight), of all NVLink or xGMI links of a device, or of
// 100 Gb/s Ethernet.
struct KnownLink {
  const char* name;
  double peak, latency;
};
const KnownLink kLinks[] = {
    {"pcie3", 15.75 * kGB, 10e-6},   {"pcie4", 31.5 * kGB, 10e-6},   {"pcie5", 63 * kGB, 10e-6},
    {"pcie4x8", 15.75 * kGB, 10e-6}, {"pcie5x8", 31.5 * kGB, 10e-6}, {"nvlink3", 300 * kGB, 5e-6},
    {"nvlink", 450 * kGB, 5e-6},     {"nvlink5", 900 * kGB, 5e-6},   {"xgmi", 448 * kGB, 5e-6},
    {"ethernet", 12.5 * kGB, 30e-6}, {"memory", 10 * kGB, 20e-6},
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
  require(count >= 1 && count <= kMostRanks, flag, " should name 1 to ", kMostRanks,
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

// Cards by what their drivers call them: NVIDIA's by name, AMD's by architecture. One with other
// memory than the data sheet's is another card, or a part of one.
struct Card {
  const char* called;
  const char* device;
};
constexpr Card kCards[] = {{"NVIDIA GeForce RTX 3060", "rtx-3060"},
                           {"NVIDIA GeForce RTX 3090", "rtx-3090"},
                           {"NVIDIA GeForce RTX 4060 Ti", "rtx-4060-ti"},
                           {"NVIDIA GeForce RTX 4070", "rtx-4070"},
                           {"NVIDIA GeForce RTX 4080", "rtx-4080"},
                           {"NVIDIA GeForce RTX 4090", "rtx-4090"},
                           {"NVIDIA GeForce RTX 5060 Ti", "rtx-5060-ti"},
                           {"NVIDIA GeForce RTX 5070 Ti", "rtx-5070-ti"},
                           {"NVIDIA GeForce RTX 5090", "rtx-5090"},
                           {"NVIDIA L4", "l4"},
                           {"NVIDIA L20", "l20"},
                           {"NVIDIA L40S", "l40s"},
                           {"NVIDIA A100-SXM4-40GB", "a100-40gb"},
                           {"NVIDIA A100-SXM4-80GB", "a100"},
                           {"NVIDIA H100 80GB HBM3", "h100"},
                           {"NVIDIA H200", "h200"},
                           {"NVIDIA B200", "b200"},
                           {"gfx1102", "rx-7600"},
                           {"gfx1101", "rx-7800-xt"},
                           {"gfx1100", "rx-7900-xtx"},
                           {"gfx942", "mi300x"}};

std::optional<double> number_of(const std::string& text, std::string& unit) {
  double value = 0;
  const auto* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || !std::isfinite(value) || value <= 0) return {};
  unit = std::string(stopped, end);
  return value;
}

// Bytes of a unit in lower case, 0 if it is none: "gb", "g", "gib", after a space or not. A letter
// alone is a power of ten: the smaller amount is the safer one.
double scale_of(std::string unit) {
  while (unit.starts_with(' ')) unit.erase(0, 1);
  constexpr std::string_view kLetters = "kmgt";
  const auto power = unit.empty() ? kLetters.npos : kLetters.find(unit.front());
  if (power == kLetters.npos) return 0;
  const auto rest = unit.substr(1);
  if (rest.empty() || rest == "b") return std::pow(1000.0, double(power + 1));
  return rest == "i" || rest == "ib" ? std::pow(1024.0, double(power + 1)) : 0;
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
  require(total <= kMostRanks, flag, " should name at most ", kMostRanks, " devices, it names ",
          total);
  std::vector<DeviceSpec> devices;
  for (const auto& [count, name] : groups) {
    const auto spec = name == "cpu" ? this_machine(cpus) : device_named(flag, name);
    devices.insert(devices.end(), std::size_t(count), spec);
  }
  return devices;
}

std::optional<DeviceSpec> device_of_card(const std::string& name, const std::string& architecture,
                                         double bytes) {
  constexpr double kLeast = 15.0 / 16;  // firmware and error correction take some of what is sold
  for (const auto& card : kCards) {
    if (card.called != (name.empty() ? architecture : name)) continue;
    const auto& device = device_named("the device", card.device);
    const bool has_memory = bytes >= kLeast * device.memory && bytes <= device.memory * 1.02;
    return has_memory ? std::optional(device) : std::nullopt;
  }
  return {};
}

LinkSpec link_named(const std::string& flag, const std::string& text, LinkRoute route) {
  const auto share = route == LinkRoute::kThroughHost ? 0.5 : 1;
  std::string names;
  for (const auto& link : kLinks) {
    if (link.name == text) return {text, link.peak * kLinkReached * share, link.latency};
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
    const auto route = device.talks_to_peers ? LinkRoute::kDirect : LinkRoute::kThroughHost;
    const auto link = link_named("the link", device.link, route);
    if (!slowest || link.speed < slowest->speed) slowest = link;
  }
  return *slowest;
}

double host_speed(const DeviceSpec& device) {
  const bool is_hosts = device.link.starts_with("pcie") || device.link == "memory";
  return is_hosts ? link_named("the link", device.link, LinkRoute::kDirect).speed : kHostSpeed;
}

double bytes_named(const std::string& flag, const std::string& text) {
  std::string unit;
  const auto value = number_of(text, unit);
  const auto scale = scale_of(ascii_lower_case(unit));
  require(value && scale > 0, flag,
          " should be an amount of memory such as 16GB, 16GiB or 800MB, it is '", text, "'");
  const double bytes = *value * scale;
  require(bytes < 0x1p63, flag, " should be less than 9.2e9 GB, it is '", text, "'");
  return bytes;
}

}  // namespace braid
