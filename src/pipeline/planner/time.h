// How long a step takes, by parts.
#pragma once

#include "pipeline/planner/devices.h"
#include "pipeline/planner/grid.h"
#include "pipeline/planner/job.h"
#include "pipeline/planner/stages.h"

namespace braid {

// What a layout runs on: a device a rank.
struct Machine {
  std::vector<DeviceSpec> devices;
  LinkSpec link;     // inside a host
  LinkSpec network;  // between hosts
  int devices_per_host = 1024;
};

// Seconds of one step of one batch, of the rank that has most to do.
//   compute        2 (4 C C + 2 C M) FLOP a token and block of width C and MLP width M (24 C C
//                  where M = 4 C), and attention's 4 S S' C for S queries and S' keys, over the
//                  device's reached FLOP/s
//   memory         the weights once, and what norms, gates, rotations and activations read and
//                  write one operation after another, over the memory's speed
//   communication  by axis: a latency for each collective, log2 n of them where n ranks meet in a
//                  tree, and its bytes over the link's speed: 2 (n - 1) / n of an all_reduce's,
//                  (n - 1) times an all_gather's own part, (n - 1) / n of an all_to_all's, a
//                  shift's as far as the attention that it travels behind is shorter
//   bubbles        with a layer split: what stages wait for each other
struct StepTime {
  double compute = 0, memory = 0, bubbles = 0;
  std::vector<std::pair<std::string, double>> communication = {};

  double total() const;
};

// `stages` are the runs of blocks of the grid's layer split: one without.
StepTime predict_time(const PlanJob& job, const Degrees& grid, const Machine& machine,
                      const std::vector<Stage>& stages);

}  // namespace braid
