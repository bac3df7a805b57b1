#include "ops/amx.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/cpu.h"

namespace braid::ops {

namespace amx {
ProductKernels with_tiles(const ProductKernels& vectors);  // tiles.cc
}

namespace {

// Linux gives tiles to a process that asks for them (Documentation/arch/x86/xstate.rst).
bool are_granted() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

const ProductKernels* amx_products(const ProductKernels& vectors) {
  static const bool has = [] {
    const auto cpu = read_cpu();
    return cpu.has("amx_tile") && cpu.has("amx_bf16") && cpu.has("amx_int8") && are_granted();
  }();
  if (!has) return nullptr;
  static const auto kernels = amx::with_tiles(vectors);
  return &kernels;
}

}  // namespace braid::ops
