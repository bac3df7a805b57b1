// How long a step takes, by component.
#pragma once

#include "pipeline/devices/specs.h"
#include "pipeline/planner/grid.h"
#include "pipeline/planner/job.h"
#include "pipeline/planner/stages.h"

namespace braid {

// The hardware under a layout: one device per rank.
struct Machine {
  std::vector<DeviceSpec> devices;
  LinkSpec link;     // inside a host
  LinkSpec network;  // between hosts
  int devices_per_host = kMostRanks;
};

// Seconds for one step of one batch, on the busiest rank. Computed, not measured: the only model of
// time; what it takes from devices is in pipeline/devices/specs.cc, and from models in their
// BlockCost.
//   compute        2 (4 C C + 2 C M) FLOP per token and block of width C and MLP width M (24 C C
//                  where M = 4 C), and attention's 4 S S' C for S queries and S' keys, each over
//                  the FLOP/s that the device reaches in it
//   memory         what all other operations read and write, as they are fused on a GPU, over the
//                  memory speed: norms, gates, rotations, activations, codes of tokens, the sums
//                  and the packing around collectives; and of the weights, in the form they are
//                  kept in, what takes longer to read than to multiply
//   gaps           a kernel's start, as often as kernels start; where steps are not recorded, what
//                  the host needs to start them beyond the device's work
//   communication  by axis: one latency per collective, log2 n of them where n ranks meet in a
//                  tree, and its bytes over the link speed: 2 (n - 1) / n of an all_reduce's,
//                  (n - 1) times an all_gather's own part, (n - 1) / n of an all_to_all's; a
//                  shift counts only for what the overlapping attention does not hide
//   bubbles        with pipeline parallelism: time stages wait for each other
//   copies         of offloaded weights, once per evaluation over the host's link or from its disk:
//                  what is not hidden by the rest, or all of it if nothing is copied ahead
struct StepTime {
  double compute = 0, memory = 0, gaps = 0, bubbles = 0, copies = 0;
  std::vector<std::pair<std::string, double>> communication = {};

  double total() const;
};

// The time of one evaluation. `stages` are the block ranges of the grid's pipeline parallelism; a
// single one without.
StepTime predict_time(const PlanJob& job, const Degrees& grid, const Machine& machine,
                      const std::vector<Stage>& stages);

}  // namespace braid
