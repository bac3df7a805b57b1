#include "pipeline/planner/grid.h"

#include <utility>

namespace braid {

std::string layout_name(const Degrees& g) {
  std::string text;
  for (const auto& [name, degree] : {std::pair{"dp", g.dp},
                                     {"cfg", g.cfg},
                                     {"layers", g.layers},
                                     {"ring", g.ring},
                                     {"ulysses", g.ulysses},
                                     {"tp", g.tp}})
    if (degree > 1)
      text += (text.empty() ? "" : " x ") + std::string(name) + " " + std::to_string(degree);
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
      for (const int layers : divisors(ranks / dp / cfg))
        for (const int ring : divisors(ranks / dp / cfg / layers))
          for (const int ulysses : divisors(ranks / dp / cfg / layers / ring))
            grids.push_back(
                {dp, cfg, layers, ring, ulysses, ranks / dp / cfg / layers / ring / ulysses});
  return grids;
}

Place strides_of(const Degrees& g) {
  const int ulysses = g.tp, ring = ulysses * g.ulysses, layers = ring * g.ring;
  const int cfg = layers * g.layers, dp = cfg * g.cfg;
  return {.dp = dp, .cfg = cfg, .layers = layers, .ring = ring, .ulysses = ulysses, .tp = 1};
}

Place place_of(const Degrees& g, int rank) {
  const auto stride = strides_of(g);
  return {.dp = rank / stride.dp,
          .cfg = rank / stride.cfg % g.cfg,
          .layers = rank / stride.layers % g.layers,
          .ring = rank / stride.ring % g.ring,
          .ulysses = rank / stride.ulysses % g.ulysses,
          .tp = rank % g.tp};
}

}  // namespace braid
