// Traffic as text, for comparisons that show what differs.
#pragma once

#include <string>

#include "comm/axis_traffic.h"

namespace braid {

inline std::string text_of_traffic(const TrafficByAxis& traffic) {
  std::string text;
  for (const auto& [axis, t] : traffic)
    text += axis + ": " + std::to_string(t.all_reduces) + " " + std::to_string(t.all_gathers) +
            " " + std::to_string(t.all_to_alls) + " " + std::to_string(t.shifts) + " " +
            std::to_string(t.broadcasts) + " " + std::to_string(t.bytes) + "\n";
  return text;
}

}  // namespace braid
