// A stand-in for NCCL between threads of one process, as a library of its name that is loaded like
// it and whose rules are NCCL's where they matter to callers:
//
// - communicators do not block: what is asked of one before it is done with the last is refused;
// - the ranks of a sum ask for equal counts and types, or the process ends; what they get is
// rounded
//   after each addition, from the last rank to the first;
// - ncclCommAbort() ends waits, then waits until all graphs that recorded messages are gone, and
// frees;
// - the use of one that was freed ends the process.
#pragma once

#include <dlfcn.h>

#include "base/error.h"
#include "comm/device/nccl.h"

namespace braid {

struct FakeNccl {
  Nccl functions;
  // How ncclCommInitRankConfig() goes from now on.
  enum Start : int { kWell, kNeverReady, kNeverReturns, kRefused };
  void (*set_start)(int start) = nullptr;
  // While `graph` is not null this thread's messages are recorded in it.
  void (*record)(const void* graph) = nullptr;
  void (*destroy_graph)(const void* graph) = nullptr;
  int (*num_communicators)() = nullptr;  // those not freed
};

// Loads it at first use.
inline const FakeNccl& fake_nccl() {
  static const FakeNccl fake = [] {
    auto* const library = ::dlopen(BRAID_FAKE_NCCL, RTLD_NOW | RTLD_LOCAL);
    check(library != nullptr, ::dlerror());
    const auto take = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, name));
    };
    FakeNccl all;
    all.functions = nccl_in(library).value();
    take(all.set_start, "fake_nccl_set_start");
    take(all.record, "fake_nccl_record");
    take(all.destroy_graph, "fake_nccl_destroy_graph");
    take(all.num_communicators, "fake_nccl_num_communicators");
    return all;
  }();
  return fake;
}

}  // namespace braid
