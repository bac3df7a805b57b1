// A matrix product whose weight is multiplied from the left, as it lies: only x, which is smaller,
// is packed in panels, once for all threads. For kernels that are `turned`.
#pragma once

#include "ops/cpu/blocked_product.h"

namespace braid::ops::cpu {

// [tokens inputs] times [outputs inputs] turned around; see Product. All functions are called by
// several threads at once, each for other parts.
template <class Word>
struct TurnedProduct {
  const ProductKernels* kernels;
  std::int64_t tokens, outputs, inputs;
  const Word* first;  // that sums of each output begin with; null: 0
  std::function<void(Range tokens, Range inputs, Word* panel)> pack;  // of x
  // Rows of the weight, each `stride` words after the one before.
  std::function<void(Range outputs, Range inputs, Word* to, std::int64_t stride)> take;
  std::function<void(std::int64_t token, Range outputs, Word* sums)> finish;
};

void run(const TurnedProduct<float>& product);
void run(const TurnedProduct<std::int32_t>& product);

}  // namespace braid::ops::cpu
