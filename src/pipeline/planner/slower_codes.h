// Where weights in few bits multiply slower than weights in 16 bits would.
#pragma once

#include <optional>
#include <string>

#include "base/gpus.h"
#include "pipeline/devices/specs.h"
#include "pipeline/planner/job.h"

namespace braid {

// Which codes a device multiplies as they are. Others are widened to 16 bits before each product:
// an additional pass, except where a CPU has no products of bfloat16 and widens numbers alike.
struct CodesMultiplied {
  std::string device;  // for people
  bool int8 = true, float8 = false;
  bool widens_numbers_too = false;
};

CodesMultiplied codes_multiplied_by(const DeviceSpec& device);
CodesMultiplied codes_multiplied_by(const std::string& name, const Gpu& gpu);
CodesMultiplied codes_multiplied_by_this_cpu();

// If most of the transformer's weights stay on the device in codes that are widened there: a
// sentence that says so, and what would multiply them as they are. The job is surveyed. Nothing for
// weights that are copied in every step, of which fewer bytes are, and for float32.
std::optional<std::string> why_codes_are_slower(const PlanJob& job, const CodesMultiplied& by);

}  // namespace braid
