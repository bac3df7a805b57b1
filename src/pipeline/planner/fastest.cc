#include "pipeline/planner/fastest.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace braid {
namespace {

DeviceSpec shared_by(double sharers, DeviceSpec spec) {
  spec.memory /= sharers;
  spec.bfloat16_flops /= sharers;
  spec.float32_flops /= sharers;
  spec.float8_flops /= sharers;
  spec.memory_speed /= sharers;
  return spec;
}

double sharers_of(const std::vector<std::string>& names, const std::string& name) {
  return double(std::count(names.begin(), names.end(), name));
}

std::vector<DeviceSpec> specs_of(const std::vector<std::string>& names, const Host& host) {
  std::vector<DeviceSpec> devices;
  for (const auto& name : names)
    devices.push_back(
        shared_by(name == "cuda" ? 1 : sharers_of(names, name), host.spec(host.device(name))));
  return devices;
}

// The data sheets of cards with the memory that is free of them; nothing if one is not known.
std::optional<std::map<std::string, DeviceSpec>> known_cards(const std::vector<std::string>& names,
                                                             const Host& host) {
  std::map<std::string, DeviceSpec> cards;
  for (const auto& name : names) {
    if (cards.contains(name)) continue;
    const auto device = host.device(name);
    auto card = host.card ? host.card(device) : std::nullopt;
    if (!card) return {};
    card->memory = host.spec(device).memory;
    cards.emplace(name, *card);
  }
  return cards;
}

Machine machine_of(std::vector<DeviceSpec> devices) {
  const auto link = link_of(devices);
  return {.devices = std::move(devices), .link = link, .network = link};
}

}  // namespace

PlannedLayout fastest_layout(const PlanJob& job, const std::vector<std::string>& names,
                             const Host& host) {
  auto layouts = plan_layouts(job, machine_of(specs_of(names, host)));
  const auto& best = layouts.front();
  require(best.fits(), "no layout of ", names.size(), names.size() == 1 ? " rank" : " ranks",
          " fits: ", layout_name(best.grid), ": ", best.reason);
  return best;
}

std::optional<SlowerSplit> slower_split(const PlanJob& job, const RankPlaces& places,
                                        const Host& host) {
  if (places.grid.product() == 1 || !places.are_threads) return {};
  const auto cards = known_cards(places.devices, host);
  if (!cards || cards->size() < 2) return {};
  std::vector<DeviceSpec> devices;
  for (const auto& name : places.devices)
    devices.push_back(shared_by(sharers_of(places.devices, name), cards->at(name)));
  const auto machine = machine_of(std::move(devices));
  const auto split = plan_layout(job, machine, places.grid);
  if (split.step.total() == 0) return {};  // refused when it runs
  std::optional<SlowerSplit> slower;
  for (const auto& [name, card] : *cards) {
    const auto alone = plan_layout(job, machine_of({card}), {});
    if (!alone.fits() || alone.seconds_per_picture >= split.seconds_per_picture) continue;
    if (slower && slower->alone <= alone.seconds_per_picture) continue;
    slower = {.split = split.seconds_per_picture,
              .alone = alone.seconds_per_picture,
              .device = name,
              .link = machine.link};
  }
  return slower;
}

}  // namespace braid
