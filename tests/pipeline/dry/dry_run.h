// A model and a step of it without numbers: the same parts, layouts and pages as a run's, on
// LibTorch's meta device, with ranks as threads. What it counts is what the planner forecasts, at
// the width of published models and without their memory.
#pragma once

#include <vector>

#include "comm/axis_traffic.h"
#include "pipeline/files/model_files.h"
#include "pipeline/planner/job.h"

namespace braid {

// What one rank holds, sends and computes. Bytes, unless said otherwise.
struct DryRank {
  std::int64_t weights = 0;      // on the device, slots included
  std::int64_t pages = 0;        // of all pages, wherever they lie
  std::int64_t slots = 0;        // on the device, for pages
  std::int64_t placed = 0;       // copied into slots while loading: pages that stay
  std::int64_t read = 0;         // of the files
  std::int64_t modulations = 0;  // for all steps of the batch
  std::int64_t ropes = 0;
  std::int64_t kept = 0;       // of references seen once; text after blocks that see only it
  std::int64_t working = 0;    // the most of a step beyond what is there before the first one
  std::int64_t beginning = 0;  // the most beyond weights until then: what is kept, and its making

  // What one step sends, after others.
  TrafficByAxis traffic = {};
  std::int64_t copied = 0;  // of pages
  std::int64_t flops = 0;   // of dense layers and attention, multiply and add
};

// Every rank of the grid. Each draws a batch of the job. Without files the weights are synthetic.
std::vector<DryRank> dry_run(const PlanJob& job, const Degrees& grid,
                             const ModelFiles* files = nullptr);

}  // namespace braid
