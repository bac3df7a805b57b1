#include "weights/paging/page_layout.h"

#include <algorithm>
#include <cmath>

namespace braid {
namespace {

double time_of(const GroupCost& group) {
  return group.blocks > 0 ? double(group.blocks) : double(group.bytes);
}

// How much of a group has to stay if the rest is copied at `rate` while the group computes.
double share_to_keep(const GroupCost& group, double rate) {
  return std::max(0.0, 1 - rate * time_of(group) / double(group.bytes));
}

// The rate, in bytes per time, at which `resident` of the groups have to stay.
double rate_for(const std::vector<GroupCost>& groups, int resident) {
  double low = 0, high = 0;
  for (const auto& group : groups) high = std::max(high, double(group.bytes) / time_of(group));
  for (int i = 0; i < 100; ++i) {
    const double rate = (low + high) / 2;
    double kept = 0;
    for (const auto& group : groups) kept += share_to_keep(group, rate);
    (kept > resident ? low : high) = rate;
  }
  return high;
}

// A group stays where the shares so far pass a whole number.
std::vector<bool> strided(const std::vector<GroupCost>& groups, int resident) {
  constexpr double kRounding = 1e-6;
  const double rate = rate_for(groups, resident);
  std::vector<bool> stay;
  double shares = 0, stayed = 0;
  for (const auto& group : groups) {
    shares += share_to_keep(group, rate);
    const double all = std::ceil(shares - kRounding);
    stay.push_back(all > stayed);
    stayed = all;
  }
  return stay;
}

std::vector<bool> among_repeated(const std::vector<GroupCost>& groups, int resident,
                                 Residency residency) {
  const int count = int(groups.size());
  if (resident <= 0 || resident >= count) return std::vector<bool>(groups.size(), resident != 0);
  if (residency == Residency::kStrided) return strided(groups, resident);
  std::vector<bool> stay(groups.size());
  std::fill_n(stay.begin(), resident, true);
  return stay;
}

}  // namespace

std::int64_t round_up(std::int64_t bytes, std::int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

std::vector<bool> resident_groups(const std::vector<GroupCost>& groups, int resident,
                                  Residency residency) {
  std::vector<GroupCost> repeated;
  std::copy_if(groups.begin(), groups.end(), std::back_inserter(repeated),
               [](const GroupCost& group) { return group.use == PageUse::kRepeated; });
  const auto stay = among_repeated(repeated, resident, residency);
  std::vector<bool> is_resident;
  for (auto next = stay.begin(); const auto& group : groups)
    is_resident.push_back(group.use == PageUse::kOnce ? resident < 0 : *next++);
  return is_resident;
}

}  // namespace braid
