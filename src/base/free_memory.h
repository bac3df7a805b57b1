// What the C library does with memory that was freed.
#pragma once

namespace braid {

// Returns freed memory to the system. The C library keeps what lies between blocks in use, several
// hundred megabytes after blocks of many sizes.
void give_back_free_memory();

// While one of these lives, freed memory is kept for the next allocation; what was kept before, of
// other sizes, is given back first, the rest at the end. Otherwise the C library returns large
// blocks at once, and for the next tensor of that size the system has to zero new pages, which took
// 2 to 4 % of a transformer's time. For work that repeats the same sizes: where sizes grow, kept
// blocks fit nothing and only add to the peak. The first one ends the adaptation of the C library's
// limits for the whole process: behind it they stay where it would have ended.
class KeepFreedMemory {
 public:
  KeepFreedMemory();
  ~KeepFreedMemory();
  KeepFreedMemory(const KeepFreedMemory&) = delete;
  KeepFreedMemory& operator=(const KeepFreedMemory&) = delete;
};

}  // namespace braid
