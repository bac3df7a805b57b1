#include "comm/axis_traffic.h"

#include "base/error.h"

namespace braid {
namespace {

Traffic difference(const Traffic& after, const Traffic& before) {
  return {.all_reduces = after.all_reduces - before.all_reduces,
          .all_gathers = after.all_gathers - before.all_gathers,
          .all_to_alls = after.all_to_alls - before.all_to_alls,
          .broadcasts = after.broadcasts - before.broadcasts,
          .shifts = after.shifts - before.shifts,
          .bytes = after.bytes - before.bytes};
}

}  // namespace

TrafficByAxis traffic_of(const Mesh& mesh) {
  return {{"tp", mesh.tp.traffic()},      {"ulysses", mesh.ulysses.traffic()},
          {"ring", mesh.ring.traffic()},  {"context", mesh.context.traffic()},
          {"pp", mesh.pp.traffic()},      {"cfg", mesh.cfg.traffic()},
          {"dp", mesh.dp.traffic()},      {"replica", mesh.replica.traffic()},
          {"world", mesh.world.traffic()}};
}

TrafficByAxis times(TrafficByAxis traffic, int count) {
  for (auto& [axis, t] : traffic)
    for (auto* const number :
         {&t.all_reduces, &t.all_gathers, &t.all_to_alls, &t.broadcasts, &t.shifts, &t.bytes})
      *number *= count;
  return traffic;
}

TrafficByAxis traffic_between(const TrafficByAxis& before, const TrafficByAxis& after) {
  check(before.size() == after.size(), "traffic of a mesh with ", before.size(),
        " groups is compared with one of ", after.size());
  TrafficByAxis between;
  for (std::size_t i = 0; i < after.size(); ++i)
    between.push_back({after[i].axis, difference(after[i].traffic, before[i].traffic)});
  return between;
}

}  // namespace braid
