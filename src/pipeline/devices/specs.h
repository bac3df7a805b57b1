// Devices and links by name: data-sheet figures, and the fraction of them that is reached.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid {

struct DeviceSpec {
  std::string name;
  double memory;               // bytes
  double bfloat16_flops;       // per second, dense, accumulated in float32
  double float32_flops;        // per second, without TF32
  double memory_speed;         // bytes per second
  double reached;              // fraction of the FLOP/s, in large matrix products
  std::string link;            // that connects several in one host
  bool talks_to_peers = true;  // otherwise bytes go through host memory

  double attention_reached = 0;  // the same in attention; 0: as in products
  double memory_reached = 1;     // fraction of the memory speed, in passes over whole tensors
  double gap = 0;                // seconds that a kernel takes besides, to start, fill and drain
  double float8_flops = 0;       // per second; 0: float8 weights multiply in the model's dtype
  double float8_reached = 0;     // fraction of these
  bool multiplies_int8 = true;   // has products of 8-bit integers in LibTorch
};

// Bytes per second of copies to a device from its host's memory, where the link is not known to be
// the same, and of reads from a host's disk.
constexpr double kHostSpeed = 25e9, kDiskSpeed = 2e9;

// One direction of a rank's connection to the others.
struct LinkSpec {
  std::string name;
  double speed;    // bytes per second that a rank can send while receiving as many
  double latency;  // seconds until a message's first byte arrives
};

// The devices of "4xrx-7800-xt", "8xh200", "cpu", or several such separated by commas, in rank
// order. `cpu` is this machine; several share its cores and memory. Throws InputError listing the
// known names, also for no devices or more than 1024.
std::vector<DeviceSpec> devices_named(const std::string& flag, const std::string& text);

// The device that a driver's name, architecture and bytes of memory stand for; nothing unless it is
// one of those whose name is known to the letter: "NVIDIA GeForce RTX 4090" is no laptop's.
std::optional<DeviceSpec> device_of_card(const std::string& name, const std::string& architecture,
                                         double bytes);

// Bytes that go through the host cross two links, one after the other.
enum class LinkRoute { kDirect, kThroughHost };

// "pcie4", "nvlink", ... or a number of GB/s. Throws InputError listing the names.
LinkSpec link_named(const std::string& flag, const std::string& text, LinkRoute route);

// The link that all of these share: the slowest device's.
LinkSpec link_of(const std::vector<DeviceSpec>& devices);

// Bytes per second of copies from host memory to the device.
double host_speed(const DeviceSpec& device);

// "16GB", "16GiB", "512MB": bytes. Throws InputError.
double bytes_named(const std::string& flag, const std::string& text);

}  // namespace braid
