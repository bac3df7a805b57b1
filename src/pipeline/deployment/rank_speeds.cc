#include "pipeline/deployment/rank_speeds.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "comm/device/device_link.h"
#include "comm/texts.h"
#include "pipeline/devices/devices.h"
#include "pipeline/devices/rank_threads.h"

namespace braid {
namespace {

double speed_of(const Deployment& d, at::Device device, int threads, const Host& host) {
  const auto product = product_for(device, d.family->shape().hidden, d.dtype, threads);
  return kept_speed(host.speeds, host.kind(device), product,
                    [&] { return host.measure(device, product); });
}

std::size_t first_like(const std::vector<std::string>& texts, std::size_t rank) {
  return std::size_t(std::ranges::find(texts, texts[rank]) - texts.begin());
}

}  // namespace

std::vector<double> speeds_of_threads(const Deployment& d, const std::vector<std::string>& names,
                                      const Host& host) {
  const int threads = threads_per_rank(d.options, int(names.size()));
  std::map<std::string, double> of_kind;
  std::vector<double> speeds;
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    const auto device = host.device(names[rank]);
    const auto kind = host.kind(device);
    if (!of_kind.contains(kind)) of_kind[kind] = speed_of(d, device, threads, host);
    const int sharers = device.is_cpu() ? 1 : sharers_of(names, rank);
    speeds.push_back(of_kind[kind] / sharers);
  }
  return speeds;
}

std::vector<double> speeds_of_processes(const Group& world, const Deployment& d, int threads,
                                        const Host& host) {
  const auto rank = std::size_t(world.rank());
  const auto device = d.devices[rank];
  const auto identity = identity_of(device);
  const auto kinds = all_gather_texts(world, text_of(host.kind(device), ", ", threads));
  const auto places = all_gather_texts(
      world, device.is_cpu() ? text_of("rank ", rank) : identity.gpu + " " + identity.part);
  const bool measures = first_like(kinds, rank) == rank;
  const auto own = at::full({1}, measures ? speed_of(d, device, threads, host) : 0, at::kDouble);
  world.await();  // the others measure nothing
  const auto measured = world.all_gather(own, 0);
  std::vector<double> speeds;
  for (std::size_t r = 0; r < kinds.size(); ++r)
    speeds.push_back(measured[std::int64_t(first_like(kinds, r))].item<double>() /
                     sharers_of(places, r));
  return speeds;
}

}  // namespace braid
