// Layouts on a host's devices: the one that the planner ranks first, and one that is slower than a
// single device.
#pragma once

#include "pipeline/devices/host.h"
#include "pipeline/planner/memory_plan.h"

namespace braid {

// Finds the fastest layout on these devices of the host ("cpu" or "cuda:1"), one per rank. A device
// named several times is shared, but "cuda" is each rank's own. The job is surveyed. Throws
// InputError with the most frequent reason if nothing fits.
PlannedLayout fastest_layout(const PlanJob& job, const std::vector<std::string>& devices,
                             const Host& host);

// The device that draws a picture sooner alone than all devices together do in any layout.
struct FasterAlone {
  std::string device;  // its name
  double seconds;      // per picture
};

// `layouts` are all of this machine's devices, the fastest first. Nothing if no device alone has
// room for the job, and if none is faster. The job is surveyed.
std::optional<FasterAlone> faster_alone(const PlanJob& job, const Machine& machine,
                                        const std::vector<PlannedLayout>& layouts);

// The forecast of a split that takes longer than one of its cards would alone. Seconds per picture.
struct SlowerSplit {
  double split, alone;
  std::string device;  // that would be faster: "cuda:1"
  LinkSpec link;       // that the ranks talk over
  bool is_so_by_data_sheets = true;
  bool is_so_over_any_link = false;  // `split` is then what it takes over a link that costs nothing
};

// Nothing if the split is no slower, if no device alone has room for the job, and where ranks share
// one device, are processes, or compute on something whose data sheet is not known. The job is
// surveyed.
std::optional<SlowerSplit> slower_split(const PlanJob& job, const RankPlaces& places,
                                        const Host& host);

// The same over a link that was measured, by data sheets' memory. Processes count as having a
// device each, all like the first one's.
std::optional<SlowerSplit> slower_over(const PlanJob& job, const RankPlaces& places,
                                       const LinkSpec& measured, const Host& host);

}  // namespace braid
