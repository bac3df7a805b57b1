// How pages are laid out, for Pages and for those who count them before they are there.
#pragma once

#include <cstdint>
#include <vector>

#include "braid/memory.h"

namespace braid {

constexpr std::int64_t kTensorAlignment = 256, kPageAlignment = 4096;  // bytes
std::int64_t round_up(std::int64_t bytes, std::int64_t alignment);

// Whether a group is used again and again, or once before those that are.
enum class PageUse { kRepeated, kOnce };

// Which of `count` groups have a slot of their own; `resident` is of PageOptions.
std::vector<bool> resident_groups(int count, int resident, Residency residency);
// Likewise among those that are repeated; what is used once stays only where all do.
std::vector<bool> resident_groups(const std::vector<PageUse>& uses, int resident,
                                  Residency residency);

}  // namespace braid
