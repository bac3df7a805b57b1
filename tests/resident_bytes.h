// This process's resident memory, for tests of what is given back.
#pragma once

#include <dlfcn.h>

#include "base/memory_meter.h"

namespace braid {

// Sanitizers hold freed memory for a while: resident memory is not memory in use.
inline bool is_sanitized() {
  return ::dlsym(RTLD_DEFAULT, "__asan_init") || ::dlsym(RTLD_DEFAULT, "__tsan_init");
}

// What is resident now, if the meter is exact.
inline std::int64_t resident_bytes(MemoryMeter& meter) {
  meter.take();  // begins anew with what is resident
  return std::int64_t(meter.take());
}

}  // namespace braid
