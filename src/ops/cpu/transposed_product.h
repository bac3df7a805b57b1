// A matrix product with the weight on the left, read in place: only x, which is smaller, is packed
// in panels, once for all threads. For kernels that are `transposed`.
#pragma once

#include "ops/cpu/blocked_product.h"

namespace braid::ops::cpu {

// [tokens inputs] times transposed [outputs inputs]; see Product. All functions are called by
// several threads at once, each for different parts.
template <class Word>
struct TransposedProduct {
  const ProductKernels* kernels;
  std::int64_t tokens, outputs, inputs;
  const Word* first;  // initial sums of each output; null: 0
  std::function<void(Range tokens, Range inputs, Word* panel)> pack;  // of x
  // Rows of the weight, `stride` words apart.
  std::function<void(Range outputs, Range inputs, Word* to, std::int64_t stride)> take;
  std::function<void(std::int64_t token, Range outputs, Word* sums)> finish;
};

void run(const TransposedProduct<float>& product);
void run(const TransposedProduct<std::int32_t>& product);

}  // namespace braid::ops::cpu
