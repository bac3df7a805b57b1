// Jobs of models known by name, for tests.
#pragma once

#include <string>

#include "pipeline/planner/job.h"

namespace braid {

// A model of such a name, with its published sizes and defaults.
inline PlanJob named_job(const std::string& name) { return job_of_family(named_family(name)); }

// The parameters of its part in this folder.
inline std::int64_t parameters_of_named(const std::string& name, const std::string& folder) {
  const auto job = surveyed(named_job(name));
  std::int64_t sum = 0;
  for (const auto& part : job.family->description().parts)
    if (part.folder == folder)
      for (const auto& tensor : job.tensors->of(part).tensors) sum += numbers_of(tensor, 1);
  return sum;
}

}  // namespace braid
