#include "app/commands/commands.h"
#include "app/commands/plan_request.h"

#include <algorithm>

#include "app/commands/deployments.h"
#include "app/print/plan_json.h"
#include "app/print/plan_table.h"
#include "app/print/standard_output.h"
#include "pipeline/planner/slower_codes.h"

namespace braid {

int plan(const PlanFlags& flags) {
  warn_of(flags.unused);
  PlanReport report{.flags = flags, .job = job_of(flags), .machine = machine_of(flags)};
  for (const auto& device : report.machine.devices)
    if (!report.slower_codes)
      report.slower_codes = why_codes_are_slower(report.job, codes_multiplied_by(device));
  const auto layouts = plan_layouts(report.job, report.machine, Division::kAlsoBySpeed);
  const bool lacks_memory = std::any_of(layouts.begin(), layouts.end(), [](const PlannedLayout& l) {
    return l.obstacle == Obstacle::kMemory;
  });
  if (!layouts.front().fits() && lacks_memory)
    report.remedies = find_remedies(report.job, report.machine);
  report.faster_alone = faster_alone(surveyed(report.job), report.machine, layouts);
  print(flags.json ? plan_json(report, layouts) : plan_table(report, layouts));
  return layouts.front().fits() ? 0 : 1;
}

}  // namespace braid
