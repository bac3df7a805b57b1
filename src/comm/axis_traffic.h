// What this rank has given to collectives, by axis of the mesh.
#pragma once

#include <string>
#include <vector>

#include "comm/mesh.h"

namespace braid {

struct AxisTraffic {
  std::string axis;  // a group of the mesh: "tp", "ulysses", "ring", "context", "pp", ...
  Traffic traffic;

  bool operator==(const AxisTraffic&) const = default;
};

// Every group of a mesh once, in a fixed order; groups of one rank have no traffic.
using TrafficByAxis = std::vector<AxisTraffic>;

// Counts since the mesh was created.
TrafficByAxis traffic_of(const Mesh& mesh);

// The traffic of so many equal evaluations.
TrafficByAxis times(TrafficByAxis traffic, int count);

// The traffic between two snapshots of the same mesh.
TrafficByAxis traffic_between(const TrafficByAxis& before, const TrafficByAxis& after);

}  // namespace braid
