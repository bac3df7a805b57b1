#include "weights/paging/page_layout.h"

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

}  // namespace braid
