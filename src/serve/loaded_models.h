// Which of several models are loaded: as many as memory allows; the least recently used are evicted
// first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

namespace braid::serve {

// Bytes; in a budget 0 means unlimited.
struct MemoryNeed {
  std::int64_t device = 0, host = 0;
};

class LoadedModels {
 public:
  // Without any budget one model is loaded at a time.
  LoadedModels(std::vector<MemoryNeed> needs, MemoryNeed budget)
      : needs_(std::move(needs)), budget_(budget) {}

  // Call before `model` is used: returns the models to release first, which count as released.
  std::vector<std::size_t> enter(std::size_t model);
  void leave(std::size_t model);  // for a model that could not be loaded

 private:
  bool fits_beside(std::size_t model) const;

  std::vector<MemoryNeed> needs_;
  MemoryNeed budget_;
  std::list<std::size_t> loaded_;  // most recently used first
};

}  // namespace braid::serve
