// The matrix products to test: those of every instruction set this machine has and, last, tiles,
// pairs and fours emulated by loops.
#pragma once

#include <vector>

#include "ops/kernels/products.h"

namespace braid {

namespace ops::of_loops {
ProductKernels with_tiles(const ProductKernels& vectors);  // tiles.cc on tiles_of_loops.h
ProductKernels with_pairs(const ProductKernels& vectors);  // pair_products.cc
ProductKernels with_fours(const ProductKernels& vectors);  // code_products.cc
}  // namespace ops::of_loops

inline std::vector<ops::NamedProducts> all_products() {
  const auto& baseline = *ops::runnable_products(0).kernels;
  static const auto loops = ops::of_loops::with_tiles(baseline);
  static const auto pairs = ops::of_loops::with_pairs(ops::of_loops::with_fours(baseline));
  std::vector<ops::NamedProducts> all;
  for (int i = 0; ops::runnable_products(i).kernels; ++i) all.push_back(ops::runnable_products(i));
  all.push_back({"tiles_of_loops", &loops});
  all.push_back({"pairs_of_loops", &pairs});
  return all;
}

}  // namespace braid
