// Products of bfloat16 numbers by pairs. Compiled for AVX-512 with VDPBF16PS and, for tests, for
// any machine with pairs emulated by loops (BRAID_VECTORS); rows.cc says why nothing else is here.
#include "ops/kernels/vectors/words.h"

#include BRAID_VECTORS

#include "ops/kernels/vectors/pairs.h"

namespace braid::ops::BRAID_ISA {

// `vectors`, with panels of the same width, using products of pairs; few tokens are unchanged.
ProductKernels with_pairs(const ProductKernels& vectors);
ProductKernels with_pairs(const ProductKernels& vectors) {
  auto kernels = vectors;
  kernels.columns = kPanelColumns;
  kernels.rows = kStripRows;
  kernels.block_rows = 8 * kStripRows;
  kernels.depth = 512;
  kernels.halves_per_word = 2;
  kernels.pack_halves = &pack_pairs<kPanelColumns>;
  kernels.pack_scaled_codes = &pack_scaled_pairs<kPanelColumns>;
  kernels.pack_a = &take_pairs;
  kernels.multiply_halves = &multiply<OfPairs, kStripRows>;
  return kernels;
}

}  // namespace braid::ops::BRAID_ISA
