// Which of several models are loaded: as many as there is memory for, the least recently used ones
// leave first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

namespace braid::serve {

// Bytes; of a budget 0 is any.
struct MemoryNeed {
  std::int64_t device = 0, host = 0;
};

class Residency {
 public:
  // Without any budget one model is loaded at a time.
  Residency(std::vector<MemoryNeed> needs, MemoryNeed budget)
      : needs_(std::move(needs)), budget_(budget) {}

  // Before `model` is used: those that are to be let go of first, and from now on are.
  std::vector<std::size_t> enter(std::size_t model);
  void leave(std::size_t model);  // it could not be loaded

 private:
  bool fits_beside(std::size_t model) const;

  std::vector<MemoryNeed> needs_;
  MemoryNeed budget_;
  std::list<std::size_t> loaded_;  // the most recently used one first
};

}  // namespace braid::serve
