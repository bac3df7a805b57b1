// A bar chart as SVG.
#pragma once

#include <string>
#include <vector>

namespace braid {

struct Bar {
  std::string name;
  double value;       // not negative
  std::string label;  // beside the bar: the value in readable form
};

// Bars on the same scale.
struct BarPanel {
  std::string title;
  std::vector<Bar> bars;
};

// Panels below each other; readable on light and on dark pages.
std::string bar_chart(const std::vector<BarPanel>& panels);

}  // namespace braid
