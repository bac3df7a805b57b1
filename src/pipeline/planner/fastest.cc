#include "pipeline/planner/fastest.h"

#include <limits>
#include <map>

#include "base/error.h"
#include "pipeline/devices/devices.h"

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

std::vector<DeviceSpec> specs_of(const std::vector<std::string>& names, const Host& host) {
  std::vector<DeviceSpec> devices;
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    const int sharers = names[rank] == "cuda" ? 1 : sharers_of(names, rank);
    devices.push_back(shared_by(sharers, host.spec(host.device(names[rank]))));
  }
  return devices;
}

using Cards = std::map<std::string, DeviceSpec>;  // by name

// The data sheets of the cards; nothing if one is not known.
std::optional<Cards> known_cards(const std::vector<std::string>& names, const Host& host) {
  Cards cards;
  for (const auto& name : names) {
    if (cards.contains(name)) continue;
    const auto card = host.card ? host.card(host.device(name)) : std::nullopt;
    if (!card) return {};
    cards.emplace(name, *card);
  }
  return cards;
}

Machine machine_of(std::vector<DeviceSpec> devices) {
  const auto link = link_of(devices);
  return {.devices = std::move(devices), .link = link, .network = link};
}

// Finds the fastest of the cards that take less time alone than the split over this machine.
std::optional<SlowerSplit> slower_on(const Machine& machine, const PlanJob& job,
                                     const Degrees& grid, const Cards& cards) {
  const auto split = plan_layout(job, machine, grid);
  if (split.step.total() == 0) return {};  // refused when it runs
  std::optional<SlowerSplit> slower;
  for (const auto& [name, card] : cards) {
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

Machine machine_of(const std::vector<std::string>& names, const Cards& cards) {
  std::vector<DeviceSpec> devices;
  for (std::size_t rank = 0; rank < names.size(); ++rank)
    devices.push_back(shared_by(sharers_of(names, rank), cards.at(names[rank])));
  return machine_of(std::move(devices));
}

}  // namespace

PlannedLayout fastest_layout(const PlanJob& job, const std::vector<std::string>& names,
                             const Host& host) {
  auto layouts = plan_layouts(job, machine_of(specs_of(names, host)));
  if (layouts.front().fits()) return std::move(layouts.front());
  const auto& example = *count_out(layouts).front().example;
  throw InputError(text_of("no layout of ", names.size(), names.size() == 1 ? " rank" : " ranks",
                           " fits: ", layout_name(example.grid), ": ", example.reason));
}

std::optional<FasterAlone> faster_alone(const PlanJob& job, const Machine& machine,
                                        const std::vector<PlannedLayout>& layouts) {
  if (machine.devices.size() < 2) return {};
  const auto& best = layouts.front();
  std::optional<FasterAlone> fastest;
  std::map<std::string, double> seen;  // memory by name
  for (const auto& device : machine.devices) {
    if (!seen.try_emplace(device.name, device.memory).second) continue;
    const auto alone = plan_layout(job, machine_of({device}), {});
    const auto limit = fastest       ? fastest->seconds
                       : best.fits() ? best.seconds_per_picture
                                     : std::numeric_limits<double>::infinity();
    if (alone.fits() && alone.seconds_per_picture < limit)
      fastest = {.device = device.name, .seconds = alone.seconds_per_picture};
  }
  return fastest;
}

std::optional<SlowerSplit> slower_split(const PlanJob& job, const RankPlaces& places,
                                        const Host& host) {
  if (places.grid.product() == 1 || !places.are_threads) return {};
  auto cards = known_cards(places.devices, host);
  if (!cards || cards->size() < 2) return {};
  for (auto& [name, card] : *cards) card.memory = host.spec(host.device(name)).memory;  // free
  return slower_on(machine_of(places.devices, *cards), job, places.grid, *cards);
}

std::optional<SlowerSplit> slower_over(const PlanJob& job, const RankPlaces& places,
                                       const LinkSpec& measured, const Host& host) {
  const auto& first = places.devices.front();
  const bool is_on_host = host.device(first).is_cpu();
  if (places.grid.product() == 1 || (is_on_host && places.are_threads)) return {};
  auto names = places.devices;
  if (!places.are_threads) names = {first};
  const auto cards = is_on_host ? Cards{{first, host.spec(host.device(first))}}
                                : known_cards(names, host).value_or(Cards());
  if (cards.empty() || (places.are_threads && cards.size() < 2)) return {};
  auto machine = machine_of(names, cards);
  if (!places.are_threads)
    machine.devices.resize(std::size_t(places.grid.product()), machine.devices.front());
  const auto slower_with = [&](const LinkSpec& link) {
    auto linked = machine;
    linked.link = linked.network = link;
    return slower_on(linked, job, places.grid, cards);
  };
  auto slower = slower_with(measured);
  if (!slower) return {};
  if (auto free = slower_with({"free", std::numeric_limits<double>::infinity(), 0})) {
    slower = std::move(free);
    slower->is_so_over_any_link = true;
  }
  slower->is_so_by_data_sheets = slower_with(machine.link).has_value();
  return slower;
}

}  // namespace braid
