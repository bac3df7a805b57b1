// The memory of a graph's tensors. LibTorch's allocator serves it while the graph is recorded, and
// keeps it as long as it has a holder.
#pragma once

namespace braid {

class GraphPool {
 public:
  virtual ~GraphPool() = default;
  virtual void stop() = 0;        // stop serving from it; throws if it was not serving
  virtual int num_holders() = 0;  // throws if it never served
  virtual void release() = 0;     // one holder less
};

// Returns the pool to the allocator in whatever state a recording left it: LibTorch's graphs, up to
// 2.13, leave it active and held when they fail.
void give_back(GraphPool& pool) noexcept;

}  // namespace braid
