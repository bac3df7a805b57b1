// Jobs of models known by name, for tests.
#pragma once

#include <string>

#include "pipeline/planner/job.h"

namespace braid {

// A model of such a name, with its published sizes and defaults.
inline PlanJob named_job(const std::string& name) { return job_of_family(named_family(name)); }

}  // namespace braid
