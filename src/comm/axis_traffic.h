// What a rank has told the others, by the axis of the mesh along which it did.
#pragma once

#include <string>
#include <vector>

#include "comm/mesh.h"

namespace braid {

struct AxisTraffic {
  std::string axis;  // a group of the mesh: "tp", "ulysses", "ring", "context", "stages", ...
  Traffic traffic;

  bool operator==(const AxisTraffic&) const = default;
};

// Every group of a mesh once, in a fixed order; those of one rank have no traffic.
using TrafficByAxis = std::vector<AxisTraffic>;

// Since the mesh was made.
TrafficByAxis traffic_of(const Mesh& mesh);

// What came to it between two looks at the same mesh.
TrafficByAxis traffic_between(const TrafficByAxis& before, const TrafficByAxis& after);

}  // namespace braid
