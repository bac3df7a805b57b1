// Devices and links by name: public figures of data sheets, and how much of them is reached.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid {

struct DeviceSpec {
  std::string name;
  double memory;               // bytes
  double bfloat16_flops;       // a second, dense, accumulated in float32
  double float32_flops;        // a second, without TF32
  double memory_speed;         // bytes a second
  double reached;              // of the FLOP/s, in matrix products of this size
  std::string link;            // how several in one host are connected
  bool talks_to_peers = true;  // else bytes go through the host's memory
};

// One direction of what connects a rank with the others.
struct LinkSpec {
  std::string name;
  double speed;    // bytes a second that a rank can give while it takes as many
  double latency;  // seconds until the first byte of a message is there
};

// The devices of "4xrx-7800-xt", "8xh200", "cpu", or several such separated by commas, in the
// order of ranks. `cpu` is this machine; several share its cores and memory. Throws InputError that
// lists the known names, and for none or more than 1024 devices.
std::vector<DeviceSpec> devices_named(const std::string& flag, const std::string& text);

// "pcie4", "nvlink", ... or a number of GB/s. `through_host`: bytes cross two links one after the
// other. Throws InputError listing the names.
LinkSpec link_named(const std::string& flag, const std::string& text, bool through_host);

// The link that all of these have in common: the slowest device's.
LinkSpec link_of(const std::vector<DeviceSpec>& devices);

// "16GB", "16GiB", "512MB": bytes. Throws InputError.
double bytes_named(const std::string& flag, const std::string& text);

}  // namespace braid
