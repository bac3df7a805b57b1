#include "app/print/bar_chart.h"

#include <algorithm>
#include <cstdio>

namespace braid {
namespace {

// Pixels; a letter of 13 pixels is about 7.2 wide.
constexpr int kMargin = 16, kLine = 26, kBar = 18, kBars = 420, kLabel = 110;
constexpr double kLetter = 7.2;

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text)
    if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '&')
      safe += "&amp;";
    else
      safe += c;
  return safe;
}

std::string format(const char* pattern, double a, double b, double c, double d) {
  char text[160];
  std::snprintf(text, sizeof text, pattern, a, b, c, d);
  return text;
}

std::string words(double x, double y, const char* weight, const std::string& text) {
  return format("<text x=\"%.0f\" y=\"%.0f\"", x, y, 0, 0) + " font-weight=\"" + weight + "\">" +
         escaped(text) + "</text>\n";
}

double width_of_names(const std::vector<BarPanel>& panels) {
  std::size_t longest = 0;
  for (const auto& panel : panels)
    for (const auto& bar : panel.bars) longest = std::max(longest, bar.name.size());
  return kLetter * double(longest) + kMargin;
}

double largest_of(const BarPanel& panel) {
  double largest = 0;
  for (const auto& bar : panel.bars) largest = std::max(largest, bar.value);
  return largest > 0 ? largest : 1;
}

// Draws below `y` and advances it.
std::string draw(const BarPanel& panel, double names, double& y) {
  std::string svg = words(kMargin, y + kBar, "bold", panel.title);
  y += kLine;
  const double largest = largest_of(panel);
  for (const auto& bar : panel.bars) {
    const double length = kBars * bar.value / largest;
    svg += words(kMargin, y + kBar - 4, "normal", bar.name) +
           format("<rect x=\"%.0f\" y=\"%.0f\" width=\"%.1f\" height=\"%.0f\"", kMargin + names, y,
                  length, kBar) +
           " fill=\"#3b82c4\"/>\n" +
           words(kMargin + names + length + 6, y + kBar - 4, "normal", bar.label);
    y += kLine;
  }
  y += kMargin;
  return svg;
}

}  // namespace

std::string bar_chart(const std::vector<BarPanel>& panels) {
  const double names = width_of_names(panels);
  double y = kMargin;
  std::string body;
  for (const auto& panel : panels) body += draw(panel, names, y);
  const double width = 2 * kMargin + names + kBars + kLabel;
  return format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\"", width,
                y, 0, 0) +
         " font-family=\"sans-serif\" font-size=\"13\" fill=\"#808080\">\n" + body + "</svg>\n";
}

}  // namespace braid
