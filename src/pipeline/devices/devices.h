// Which device each rank computes on.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>

#include "braid/braid.h"
#include "comm/launch.h"
#include "parallel/pipeline_parallel.h"

namespace braid {

// Ready for use. Throws InputError naming the device if this LibTorch or this machine lacks it, or
// if this build has no kernels for it.
at::Device find_device(const std::string& name);

// Throws InputError unless kernels compiled for such a list (ops/gpu/architectures.h) run on the
// device of this name and architecture.
void require_kernels(const std::string& name, const std::string& architecture,
                     const std::string& compiled);

// The number in "cuda" or "cuda:1". Throws InputError for other names and for numbers from
// `count()` on, which is asked only for such a name.
int index_of_gpu(const std::string& name, const std::function<int()>& count);

// The device of every rank: options.devices if given, with ranges such as "cuda:0-3" expanded, else
// options.device. A single entry serves all ranks; otherwise throws InputError unless there is one
// entry per rank.
std::vector<at::Device> devices_of(
    const PipelineOptions& options, const Degrees& degrees,
    const std::function<at::Device(const std::string&)>& find = find_device);

// The names in options.devices with ranges expanded, or options.device if there are none.
std::vector<std::string> device_names(const PipelineOptions& options);
// One for each of `num_ranks` ranks: a single name serves all.
std::vector<std::string> names_of_ranks(const PipelineOptions& options, std::size_t num_ranks);
// Where a launcher started the ranks as processes, "cuda" means each one's own GPU. These spell it
// out: the device of each of `num_ranks` ranks, and the devices of those on this host, which has
// `num_gpus`.
std::vector<std::string> names_by_rank(const PipelineOptions& options, std::size_t num_ranks,
                                       const std::optional<Launch>& launch);
std::vector<std::string> names_on_host(const PipelineOptions& options, std::size_t num_gpus,
                                       const std::optional<Launch>& launch);
std::string list_of_devices(const PipelineOptions& options);  // the same, separated by commas

// Counts the ranks that compute on the same device as `rank`, itself included. Devices are by rank:
// named, or LibTorch's.
template <class Device>
int sharers_of(const std::vector<Device>& devices, std::size_t rank) {
  return int(std::count(devices.begin(), devices.end(), devices[rank]));
}

// The dtype asked for, else the checkpoint's if the device has instructions for it, else float32.
at::ScalarType choose_dtype(Dtype asked, at::ScalarType stored, at::Device device);

// Waits until the device has done what this thread's current stream was given. No call may wait for
// a whole device: another pipeline of the process may be recording on one of its streams.
void wait_for(at::Device device);

// Free memory of a GPU that find_device() would find; nothing for others.
std::optional<std::int64_t> free_gpu_bytes(const std::string& name);

// Free memory of a device, shared evenly among `num_ranks` ranks. What this process has freed and
// its allocator keeps is free, too.
StageMemory free_memory(at::Device device, int num_ranks);

}  // namespace braid
