#include "ops/kernels/amx.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/cpu.h"

namespace braid::ops {

namespace avx512_vnni {
ProductKernels with_fours(const ProductKernels& vectors);  // code_products.cc
}  // namespace avx512_vnni
namespace avx512_bf16 {
ProductKernels with_pairs(const ProductKernels& vectors);             // pair_products.cc
AttentionKernels attention_by_pairs(const ProductKernels& products);  // pair_attention.cc
}  // namespace avx512_bf16
namespace amx {
ProductKernels with_tiles(const ProductKernels& vectors);       // tiles.cc
AttentionKernels attention_by(const ProductKernels& products);  // tiled_attention.cc
}  // namespace amx

namespace {

// Linux grants tiles to processes that request them (Documentation/arch/x86/xstate.rst).
bool are_granted() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool are_there() {
  static const bool are = read_cpu().isa() == Isa::kAmx && are_granted();
  return are;
}

}  // namespace

const ProductKernels* vnni_products(const ProductKernels& vectors) {
  if (read_cpu().isa() < Isa::kAvx512Vnni) return nullptr;
  static const auto kernels = avx512_vnni::with_fours(vectors);
  return &kernels;
}

const ProductKernels* bf16_products(const ProductKernels& vectors) {
  if (read_cpu().isa() < Isa::kAvx512Bf16) return nullptr;
  static const auto kernels = avx512_bf16::with_pairs(*vnni_products(vectors));
  return &kernels;
}

const AttentionKernels* bf16_attention(const ProductKernels& vectors) {
  if (read_cpu().isa() < Isa::kAvx512Bf16) return nullptr;
  static const auto kernels = avx512_bf16::attention_by_pairs(*bf16_products(vectors));
  return &kernels;
}

const ProductKernels* amx_products(const ProductKernels& vectors) {
  if (!are_there()) return nullptr;
  static const auto kernels = amx::with_tiles(vectors);
  return &kernels;
}

const AttentionKernels* amx_attention(const ProductKernels& vectors) {
  if (!are_there()) return nullptr;
  static const auto kernels = amx::attention_by(*amx_products(vectors));
  return &kernels;
}

}  // namespace braid::ops
