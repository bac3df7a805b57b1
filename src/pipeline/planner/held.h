// Where a part's weights lie for a given offload mode: the arithmetic of Pages, before there are
// any.
#pragma once

#include "pipeline/planner/tensors.h"

namespace braid {

// Whose share: of rank `tp_rank` of `tp`, blocks [begin, begin + count) with what comes before the
// first block and after the last one; by default all.
struct PartShare {
  int tp = 1, tp_rank = 0;
  std::int64_t begin = 0, count = std::int64_t(1) << 40;
};

struct PlannedPage {
  std::int64_t bytes;
  PageUse use;
};

// A part as some level of offloading cuts it.
struct PartPages {
  std::int64_t outside = 0;         // bytes that are always on the device
  std::vector<PlannedPage> groups;  // in the order of loading
  std::int64_t widened = 0;         // the largest quantised matrix in numbers, while it multiplies
  std::int64_t largest_tensor = 0;  // in numbers, as it is read

  std::int64_t paged() const;
};

struct PartForm {
  Quantize quantize = Quantize::kNone;
  OffloadMode offload = OffloadMode::kNone;
  int blocks = 1;  // a group, with kBlock
};

PartPages pages_of(const PartTensors& part, const PartShare& share, const PartForm& form);

// Bytes of the slots. Of a GPU's every byte is taken; of the host's those that a page has touched,
// and no slot is larger than the largest page that comes there.
enum class SlotsOf { kDevice, kHost };
std::int64_t slot_bytes(const PartPages& pages, const Offload& offload, SlotsOf where);

// Of the pages that have no slot of their own: what is copied each time the part runs, or once
// before.
std::int64_t copied_bytes(const PartPages& pages, const Offload& offload, PageUse use);

// Of the pages that have one.
std::int64_t resident_bytes(const PartPages& pages, const Offload& offload);

}  // namespace braid
