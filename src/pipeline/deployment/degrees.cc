#include "pipeline/deployment/degrees.h"

#include <algorithm>

#include "base/error.h"
#include "parallel/refusals.h"

namespace braid {
namespace {

Degrees unchecked_degrees(const Layout& l) {
  return {.dp = l.dp,
          .cfg = l.cfg,
          .pp = l.pp,
          .ring = l.ring,
          .ulysses = l.ulysses,
          .tp = l.tp,
          .shares = l.shares};
}

// Nothing where the layout leaves it to us.
std::optional<std::chrono::milliseconds> chosen_deadline(const Layout& layout) {
  if (layout.deadline == Layout().deadline) return std::nullopt;
  return std::chrono::milliseconds(std::int64_t(1000 * layout.deadline));
}

// Processes start at different times, so that the usual deadline is too short.
std::chrono::milliseconds meeting_of(const Layout& layout) {
  return chosen_deadline(layout).value_or(std::chrono::minutes(1));
}

}  // namespace

bool has_degrees(const Layout& layout) {
  const auto degrees = unchecked_degrees(layout);
  return std::ranges::any_of(kAxes, [&](const Axis& axis) { return degrees.*axis.degree != 1; });
}

Degrees degrees_of(const Layout& layout) {
  const auto degrees = unchecked_degrees(layout);
  for (const auto& axis : kAxes) {
    const int degree = degrees.*axis.degree;
    require(degree >= 1 && degree <= kMostRanks, "every degree of a layout should lie between 1 ",
            "and ", kMostRanks, ", one is ", degree);
  }
  check_shares(degrees);
  return degrees;
}

WorldOptions world_of(const Layout& layout) {
  require(layout.deadline >= 0 && layout.deadline <= 1e6, "the deadline should lie between 0 and ",
          "1000000 seconds, it is ", layout.deadline);
  const auto degrees = degrees_of(layout);
  const double ranks =
      double(degrees.dp) * degrees.cfg * degrees.pp * degrees.ring * degrees.ulysses * degrees.tp;
  require(ranks <= kMostRanks, to_string(degrees), " are more than ", kMostRanks, " ranks");
  return {.size = int(ranks),
          .product = to_string(degrees),
          .deadline = deadline_of(layout, {}),
          .meeting = meeting_of(layout)};
}

// A GPU loads or compiles what is used first, which takes one rank longer than another.
std::chrono::milliseconds deadline_of(const Layout& layout, const std::vector<at::Device>& ranks) {
  const bool has_gpu =
      std::any_of(ranks.begin(), ranks.end(), [](at::Device device) { return !device.is_cpu(); });
  return chosen_deadline(layout).value_or(std::chrono::seconds(has_gpu ? 60 : 10));
}

Layout choose_layout(const Layout& asked, int num_ranks, int num_branches) {
  const bool has_branches = num_branches == 2;
  require(asked.cfg == 1 || has_branches, too_few_branches(asked.cfg, num_branches),
          "; guidance that a model was distilled for is a single branch");
  require(asked.cfg <= 2, too_few_branches(asked.cfg, num_branches));
  if (num_ranks == 1 || has_degrees(asked)) return asked;
  auto layout = asked;
  require(has_branches && num_ranks % 2 == 0, to_string(Degrees()), " = 1, but there are ",
          num_ranks, " ranks: ask for degrees that multiply to ", num_ranks,
          "; cfg is 2 at most, and takes a negative prompt");
  layout.cfg = 2;
  layout.ulysses = num_ranks / 2;
  return layout;
}

}  // namespace braid
