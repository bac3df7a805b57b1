#include "base/free_memory.h"

#include <malloc.h>

#include <mutex>

namespace braid {
namespace {

// From `large` bytes on, blocks are returned when they are freed; so is a free end of the heap that
// is longer than `end`. Returns whether the limits were taken: older C libraries refuse a `large`
// above 32 MiB. The second alone would only stop the first from growing with what is freed.
bool set_limits(int large, int end) {
  return mallopt(M_MMAP_THRESHOLD, large) == 1 && mallopt(M_TRIM_THRESHOLD, end) == 1;
}

struct Keepers {
  std::mutex mutex;
  int count = 0;
  bool were_taken = false;  // the limits
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
  keepers().were_taken = set_limits(1 << 30, 1 << 30);
}

KeepFreedMemory::~KeepFreedMemory() {
  const std::lock_guard lock(keepers().mutex);
  if (--keepers().count > 0) return;
  // The C library's own limits grow until here. It cannot be told to let them grow again.
  if (keepers().were_taken) set_limits(32 << 20, 64 << 20);
  give_back_free_memory();
}

}  // namespace braid
