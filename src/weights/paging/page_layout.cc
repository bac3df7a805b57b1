#include "weights/paging/page_layout.h"

#include <algorithm>

namespace braid {

std::int64_t round_up(std::int64_t bytes, std::int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

std::vector<bool> resident_groups(int count, int resident, Residency residency) {
  const bool all = resident < 0 || resident >= count;
  std::vector<bool> is_resident(std::size_t(count), all);
  for (int i = 0; i < resident && !all; ++i)
    is_resident[std::size_t(residency == Residency::kLeading ? i : i * count / resident)] = true;
  return is_resident;
}

std::vector<bool> resident_groups(const std::vector<PageUse>& uses, int resident,
                                  Residency residency) {
  const auto repeated = std::count(uses.begin(), uses.end(), PageUse::kRepeated);
  const auto stay = resident_groups(int(repeated), resident, residency);
  std::vector<bool> is_resident;
  for (auto next = stay.begin(); const auto use : uses)
    is_resident.push_back(use == PageUse::kOnce ? resident < 0 : *next++);
  return is_resident;
}

}  // namespace braid
