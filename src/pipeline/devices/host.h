// The machine that a deployment is for: this one, or one that is only described.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/gpus.h"
#include "comm/launch.h"
#include "pipeline/devices/device_speed.h"
#include "pipeline/devices/specs.h"

namespace braid {

struct Host {
  std::optional<Launch> launch = {};  // of this process, if a launcher made it one of several ranks
  // The cards that its drivers list, in LibTorch's order.
  std::function<std::vector<Gpu>()> gpus = {};
  // LibTorch's device for "cpu", "cuda" or "cuda:1"; throws InputError if there is none.
  std::function<at::Device(const std::string& name)> device = {};
  // What the planner counts with. The memory is what is free; of ranks that a launcher started,
  // each would find what others hold by then, so it is all there is.
  std::function<DeviceSpec(at::Device)> spec = {};
  // What is free of a GPU's memory; nothing where it is unknown, and for ranks of a launch.
  std::function<std::optional<double>(const std::string& device)> free_bytes = {};
  // The data sheet of a card that is known by its name; nothing for others, and for CPUs.
  std::function<std::optional<DeviceSpec>(at::Device)> card = {};
  // What devices that are alike have in common: "NVIDIA GeForce RTX 4090, 25.8 GB".
  std::function<std::string(at::Device)> kind = {};
  // measure_product(), and the folder where speeds are kept; empty: nowhere.
  std::function<double(at::Device, const TimedProduct&)> measure = {};
  std::filesystem::path speeds = {};
};

Host this_host();

// One with these devices, which need not be here: "2xrx-7800-xt" are cuda:0 and cuda:1, with the
// memory they are sold with. It has no launcher.
Host described_host(const std::vector<DeviceSpec>& devices);

// The device of this process. Of a launch's rank, "cuda" becomes the device with its number on its
// host or, where the launcher shows each rank one GPU (srun --gpus-per-task=1, CUDA_VISIBLE_DEVICES
// set by a wrapper), that one; anything else stays. Throws InputError for a rank beyond the last
// visible GPU. With none visible, the device is not found later.
std::string device_of_rank(const std::string& device, const Host& host);
std::string device_of_rank(const std::string& device, const std::optional<Launch>& launch,
                           std::size_t num_visible);

}  // namespace braid
