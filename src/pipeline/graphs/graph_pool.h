// The memory that a graph's tensors lie in. LibTorch's allocator gives it out while the graph is
// recorded, and keeps it for the graph as long as somebody holds it.
#pragma once

namespace braid {

class GraphPool {
 public:
  virtual ~GraphPool() = default;
  virtual void stop() = 0;        // gives out no more of it; throws where it gave out none
  virtual int num_holders() = 0;  // throws where it never gave out any
  virtual void release() = 0;     // one holder less
};

// Leaves the pool to the allocator in whatever state a recording has left it: LibTorch's graphs, up
// to 2.13, leave it given out and held when they fail.
void give_back(GraphPool& pool) noexcept;

}  // namespace braid
