#include "comm/device/device_link.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "base/gpu_runtime.h"
#include "comm/texts.h"

namespace braid {
namespace {

// The same in all containers of a computer, whose host names differ; otherwise the host name.
std::string computer() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  if (!id.empty()) return id;
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

DeviceIdentity identity_of(at::Device device) {
  if (device.is_cpu()) return {};
  const auto slot = gpu_runtime::bus_id(device.index());
  return {.gpu = text_of(computer(), " ", slot.empty() ? std::to_string(device.index()) : slot),
          .part = gpu_runtime::uuid(device.index())};
}

std::string device_link_name() {
  const int v = device_link_version();
  return v == 0 ? "" : text_of("NCCL ", v / 10000, ".", v / 100 % 100, ".", v % 100);
}

std::string why_through_hosts(const std::vector<DeviceIdentity>& identities, int link_version) {
  constexpr int kTakesParts = 23000;
  if (link_version == 0) return "LibTorch has loaded no NCCL or RCCL, which link GPUs";
  for (std::size_t rank = 0; rank < identities.size(); ++rank) {
    const auto& mine = identities[rank];
    if (mine.gpu.empty()) return text_of("rank ", rank, " computes on a CPU");
    for (std::size_t other = 0; other < rank; ++other) {
      if (identities[other].gpu != mine.gpu) continue;
      if (identities[other].part == mine.part)
        return text_of("ranks ", other, " and ", rank, " share a GPU");
      if (link_version < kTakesParts)
        return text_of("ranks ", other, " and ", rank,
                       " have parts of one GPU, which NCCL links from 2.30 on");
    }
  }
  return {};
}

void check_collectives(Collectives collectives, int size, const LinkedDevices& linked) {
  require(collectives == Collectives::kOrdered || size == 1 || linked.link,
          "native collectives need a GPU for each rank and NCCL or RCCL between them: ",
          linked.why_not.empty() ? "there is no link" : linked.why_not);
}

LinkedDevices link_devices(const Group& world, at::Device device) {
  if (world.size() == 1) return {};
  const auto mine = identity_of(device);
  const auto gpus = all_gather_texts(world, mine.gpu), parts = all_gather_texts(world, mine.part);
  std::vector<DeviceIdentity> identities;
  for (std::size_t rank = 0; rank < gpus.size(); ++rank)
    identities.push_back({.gpu = gpus[rank], .part = parts[rank]});
  const auto why_not = why_through_hosts(identities, device_link_version());
  if (!why_not.empty()) return {.why_not = why_not};
  return {.link = make_device_link(world, device)};
}

}  // namespace braid
