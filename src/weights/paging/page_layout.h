// The layout of pages, for Pages and for forecasts.
#pragma once

#include <cstdint>
#include <vector>

#include "braid/memory.h"

namespace braid {

constexpr std::int64_t kTensorAlignment = 256, kPageAlignment = 4096;  // bytes
std::int64_t round_up(std::int64_t bytes, std::int64_t alignment);

// Whether a group is used repeatedly, or once, before the repeated ones.
enum class PageUse { kRepeated, kOnce };

// Which of `count` groups have their own slot; `resident` as in PageOptions.
std::vector<bool> resident_groups(int count, int resident, Residency residency);
// The same among the repeated groups; groups used once are resident only if all are.
std::vector<bool> resident_groups(const std::vector<PageUse>& uses, int resident,
                                  Residency residency);

}  // namespace braid
