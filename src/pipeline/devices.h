// Which device each rank computes on.
#pragma once

#include "braid/braid.h"
#include "parallel/layer_split.h"

namespace braid {

// Ready for use. Throws InputError naming the device unless this LibTorch and this machine have it.
at::Device find_device(const std::string& name);

// The device of every rank: options.devices where there are any, with ranges such as "cuda:0-3"
// taken apart, else options.device. One entry serves all ranks. Throws InputError unless there are
// as many entries as ranks otherwise.
std::vector<at::Device> devices_of(const PipelineOptions& options, const Degrees& degrees);

// The names of options.devices without ranges; options.device where there are none.
std::vector<std::string> device_names(const PipelineOptions& options);
std::string list_of_devices(const PipelineOptions& options);  // the same with commas between them

// What is free on a device, shared evenly among `num_ranks` ranks.
StageMemory free_memory(at::Device device, int num_ranks);

// The layout that a request runs under when `num_ranks` ranks are there: what was asked for. When
// nothing was, and the request has two branches of guidance and the ranks are even in number, the
// branches go to different ranks, and what ranks are left over trade tokens for heads.
Layout choose_layout(const Layout& asked, int num_ranks, int num_branches);

}  // namespace braid
