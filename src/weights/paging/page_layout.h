// The layout of pages, for Pages and for forecasts.
#pragma once

#include <cstdint>
#include <vector>

#include "braid/memory.h"
#include "weights/paging/file_reader.h"

namespace braid {

constexpr std::int64_t kTensorAlignment = 256;               // bytes
constexpr std::int64_t kPageAlignment = FileReader::kBlock;  // for direct reads
std::int64_t round_up(std::int64_t bytes, std::int64_t alignment);

// Whether a group is used repeatedly, or once, before the repeated ones.
enum class PageUse { kRepeated, kOnce };

// What it takes to copy a group, and to compute with it.
struct GroupCost {
  std::int64_t bytes = 0;
  PageUse use = PageUse::kRepeated;
  // Blocks that it computes, which take equally long. 0: its layers' time goes with their bytes.
  int blocks = 0;
};

// Which groups have their own slot; `resident` counts repeated groups, as in PageOptions. Groups
// used once are resident only if all are. Residency::kStrided evens out what is copied while a
// block computes: it is nowhere more than where groups stay. Of groups alike every n-th stays; of a
// model with two kinds of blocks, those with more bytes stay first.
std::vector<bool> resident_groups(const std::vector<GroupCost>& groups, int resident,
                                  Residency residency);

}  // namespace braid
