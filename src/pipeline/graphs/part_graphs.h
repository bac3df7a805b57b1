// Device graphs where a cache decides in the middle of an evaluation: each part before and after
// the decision is a graph of its own. The decision itself, one number, is read by the host.
#pragma once

#include <memory>
#include <vector>

#include "pipeline/graphs/step_graph.h"
#include "pipeline/sampling/step_cache.h"

namespace braid {

class PartGraphs {
 public:
  // Graphs as of a StepGraph, recorded on one stream.
  explicit PartGraphs(StepGraphOptions options);

  // Each part with its graphs; one that is undefined stays so. As with StepGraph, a part must do
  // the same for the same shapes and choices. Evaluations of several branches and pictures that
  // differ in them have graphs of their own, at most kMostGraphs per part: each graph has memory.
  // Others are evaluated without.
  CachedParts over(CachedParts parts);
  static constexpr std::size_t kMostGraphs = 2;  // true guidance has two branches

  // Adds up the use of all parts; `replays` counts parts.
  GraphUse use() const;
  void forget() const;  // as StepGraph's
  // The pictures so far are drawn: their graphs stay for those that fit, or make room for others.
  void end_pictures() const;

 private:
  class Recorded;
  class Recordings;

  StepGraphOptions options_;
  std::vector<std::shared_ptr<Recordings>> parts_;
};

}  // namespace braid
