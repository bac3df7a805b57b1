#include "comm/process/device_link.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <map>

#include "base/error.h"
#include "base/gpu_runtime.h"
#include "comm/group.h"

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

// Every rank's text, cut to 127 characters.
std::vector<std::string> all_gather_texts(const Group& world, std::string mine) {
  constexpr std::int64_t kSize = 128;
  mine.resize(kSize - 1);
  auto row = at::zeros({1, kSize}, at::kByte);
  std::memcpy(row.mutable_data_ptr(), mine.data(), mine.size());
  const auto rows = world.all_gather(row, 0);
  std::vector<std::string> texts;
  for (std::int64_t r = 0; r < world.size(); ++r)
    texts.emplace_back(static_cast<const char*>(rows[r].const_data_ptr()));
  return texts;
}

}  // namespace

std::string identity_of(at::Device device) {
  if (device.is_cpu()) return {};
  const auto slot = gpu_runtime::bus_id(device.index());
  return text_of(computer(), " ", slot.empty() ? std::to_string(device.index()) : slot);
}

std::string why_through_hosts(const std::vector<std::string>& identities) {
  if (device_link_name().empty()) return "this build has no link between GPUs";
  std::map<std::string, std::size_t> first;
  for (std::size_t rank = 0; rank < identities.size(); ++rank) {
    if (identities[rank].empty()) return text_of("rank ", rank, " computes on a CPU");
    const auto [other, is_new] = first.emplace(identities[rank], rank);
    if (!is_new) return text_of("ranks ", other->second, " and ", rank, " share a GPU");
  }
  return {};
}

LinkedDevices link_devices(const Group& world, at::Device device) {
  if (world.size() == 1) return {};
  const auto why_not = why_through_hosts(all_gather_texts(world, identity_of(device)));
  if (!why_not.empty()) return {.why_not = why_not};
  return {.link = make_device_link(world, device)};
}

}  // namespace braid
