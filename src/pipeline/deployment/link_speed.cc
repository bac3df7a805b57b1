#include "pipeline/deployment/link_speed.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/readable_bytes.h"
#include "pipeline/devices/devices.h"
#include "pipeline/planner/fastest.h"

namespace braid {
namespace {

constexpr int kExchanges = 4;                           // of each size; the first one warms up
constexpr std::int64_t kFirstBytes = 1 << 20;           // a rank's part
constexpr std::int64_t kMostReceived = 64 * (1 << 20);  // by a rank, where the link is fast
constexpr double kLongExchange = 2e-3;                  // seconds of one exchange

// The fastest of a few runs, on the rank where it took longest.
double seconds_of_exchange(const Group& world, at::Device device,
                           const std::function<void()>& exchange) {
  using Clock = std::chrono::steady_clock;
  double fastest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kExchanges; ++i) {
    world.barrier();
    wait_for(device);
    const auto began = Clock::now();
    exchange();
    wait_for(device);
    fastest = std::min(fastest, std::chrono::duration<double>(Clock::now() - began).count());
  }
  return world.all_gather(at::full({1}, fastest, at::kDouble), 0).max().item<double>();
}

double seconds_of_gather(const Group& world, at::Device device, std::int64_t bytes) {
  const auto part = at::zeros({bytes}, at::TensorOptions(device).dtype(at::kByte));
  return seconds_of_exchange(world, device, [&] { (void)world.all_gather(part, 0); });
}

bool splits_a_picture(const Degrees& grid) { return grid.product() > grid.dp; }

bool are_distinct(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) == names.end();
}

}  // namespace

LinkSpec measure_link(const Group& world, at::Device device) {
  const auto others = double(world.size() - 1);
  const double small = seconds_of_gather(world, device, 1);
  // A recorded step's exchanges over a device link go without the hosts' agreement.
  const double agreement =
      world.stays_on_device() ? seconds_of_exchange(world, device, [&] { world.barrier(); }) : 0;
  auto bytes = kFirstBytes;
  auto large = seconds_of_gather(world, device, bytes);
  while (large < kLongExchange && 4 * bytes * world.size() <= kMostReceived) {
    bytes *= 4;
    large = seconds_of_gather(world, device, bytes);
  }
  constexpr double kShortest = 1e-9;
  return {.name = "measured",
          .speed = others * double(bytes) / std::max(large - small, kShortest),
          .latency = std::max(small - agreement, 0.0) / std::ceil(std::log2(world.size()))};
}

std::optional<LinkSpec> link_between_ranks(const Group& world, const Deployment& d,
                                           int ranks_on_these_cores, const Host& host) {
  if (!splits_a_picture(d.degrees())) return {};
  const auto is_known = [&](at::Device device) {
    return device.is_cpu() ? ranks_on_these_cores == 1 : host.card(device).has_value();
  };
  const auto device = d.devices[std::size_t(world.rank())];
  if (d.places.are_threads) {
    const bool are_known = std::ranges::all_of(d.devices, is_known);
    if (!are_known || !are_distinct(d.places.devices)) return {};
    world.await();
    return measure_link(world, device);
  }
  world.await();  // processes come here at different times
  const auto known = world.all_gather(at::full({1}, is_known(device), at::kBool), 0);
  return known.all().item<bool>() ? std::optional(measure_link(world, device)) : std::nullopt;
}

std::optional<std::string> slow_link_warning(const Deployment& d, const Request& request,
                                             const LinkSpec& link, const Host& host) {
  const auto slower = slower_over(job_of(d, request), d.places, link, host);
  if (!slower || (slower->is_so_by_data_sheets && d.places.are_threads && !d.layout_plan))
    return {};
  const std::string alone = d.places.are_threads ? slower->device : "one rank";
  const auto split = text_of(layout_name(d.degrees()), " is predicted to take ",
                             three_digits(slower->split), " s a picture");
  const auto compared =
      text_of(", ", alone, " alone ", three_digits(slower->alone), " s; see braid plan");
  if (slower->is_so_over_any_link)
    return text_of(split, " over a link that costs nothing", compared);
  return text_of("the link between the ranks gives ", readable_bytes(link.speed), "/s and takes ",
                 three_digits(1e6 * link.latency), " us a message: with it ", split, compared);
}

}  // namespace braid
