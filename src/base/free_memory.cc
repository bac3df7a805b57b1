#include "base/free_memory.h"

#include <malloc.h>

#include <mutex>

namespace braid {
namespace {

// From `large` bytes on, blocks are returned when they are freed; so is a free end of the heap that
// is longer than `end`.
void set_limits(int large, int end) {
  mallopt(M_MMAP_THRESHOLD, large);
  mallopt(M_TRIM_THRESHOLD, end);
}

struct Keepers {
  std::mutex mutex;
  int count = 0;
};

Keepers& keepers() {
  static Keepers all;
  return all;
}

}  // namespace

void give_back_free_memory() { malloc_trim(/*pad=*/0); }

KeepFreedMemory::KeepFreedMemory() {
  const std::lock_guard lock(keepers().mutex);
  if (keepers().count++ > 0) return;
  give_back_free_memory();
  set_limits(1 << 30, 1 << 30);
}

KeepFreedMemory::~KeepFreedMemory() {
  const std::lock_guard lock(keepers().mutex);
  if (--keepers().count > 0) return;
  set_limits(32 << 20, 64 << 20);  // where the C library's own, growing limits end
  give_back_free_memory();
}

}  // namespace braid
