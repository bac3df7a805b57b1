#include "pipeline/planner/grid.h"

#include <utility>

namespace braid {

std::string layout_name(const Degrees& g) {
  std::string text;
  for (const auto& [name, ranks] : {std::pair{"dp", g.of_dp()},
                                    {"cfg", Shares(g.cfg)},
                                    {"pp", g.of_pp()},
                                    {"ring", g.of_ring()},
                                    {"ulysses", g.of_ulysses()},
                                    {"tp", g.of_tp()}}) {
    if (ranks.size() == 1) continue;
    text += (text.empty() ? "" : " x ") + std::string(name) + " " + in_words(ranks);
  }
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

Place strides_of(const Degrees& g) {
  const int ulysses = g.tp, ring = ulysses * g.ulysses, pp = ring * g.ring;
  const int cfg = pp * g.pp, dp = cfg * g.cfg;
  return {.dp = dp, .cfg = cfg, .pp = pp, .ring = ring, .ulysses = ulysses, .tp = 1};
}

Place place_of(const Degrees& g, int rank) {
  const auto stride = strides_of(g);
  return {.dp = rank / stride.dp,
          .cfg = rank / stride.cfg % g.cfg,
          .pp = rank / stride.pp % g.pp,
          .ring = rank / stride.ring % g.ring,
          .ulysses = rank / stride.ulysses % g.ulysses,
          .tp = rank % g.tp};
}

}  // namespace braid
