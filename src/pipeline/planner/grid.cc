#include "pipeline/planner/grid.h"

#include <algorithm>
#include <iterator>

namespace braid {

std::string layout_name(const Degrees& g) {
  std::string text;
  for (const auto& axis : kAxes)
    if (g.*axis.degree > 1)
      text += (text.empty() ? "" : " x ") + std::string(axis.name) + " " + in_words(axis.of(g));
  return text.empty() ? "one rank" : text;
}

std::vector<Degrees> grids_of(int ranks) {
  std::vector<Degrees> grids;
  const auto divisors = [](int n) {
    std::vector<int> all;
    for (int d = 1; d <= n; ++d)
      if (n % d == 0) all.push_back(d);
    return all;
  };
  for (const int dp : divisors(ranks))
    for (const int cfg : divisors(ranks / dp))
      for (const int pp : divisors(ranks / dp / cfg))
        for (const int ring : divisors(ranks / dp / cfg / pp))
          for (const int ulysses : divisors(ranks / dp / cfg / pp / ring))
            grids.push_back({dp, cfg, pp, ring, ulysses, ranks / dp / cfg / pp / ring / ulysses});
  return grids;
}

int stride_along(const Degrees& g, int Degrees::*degree) {
  int stride = 1;
  const auto* axis = std::ranges::find(kAxes, degree, &Axis::degree);
  while (++axis < std::end(kAxes)) stride *= g.*axis->degree;
  return stride;
}

bool a_group_crosses(int ranks_per_host, const Degrees& grid, int stride, int ranks) {
  for (int first = 0; first < grid.product(); ++first) {
    const int last = first + stride * (ranks - 1);
    const bool begins_group = first / stride % ranks == 0;
    if (begins_group && first / ranks_per_host != last / ranks_per_host) return true;
  }
  return false;
}

Place place_of(const Degrees& g, int rank) {
  const auto along = [&](int Degrees::*degree) {
    return rank / stride_along(g, degree) % (g.*degree);
  };
  return {.dp = along(&Degrees::dp),
          .cfg = along(&Degrees::cfg),
          .pp = along(&Degrees::pp),
          .ring = along(&Degrees::ring),
          .ulysses = along(&Degrees::ulysses),
          .tp = along(&Degrees::tp)};
}

}  // namespace braid
