// Skipping most of some transformer evaluations: faster pictures that are not quite the same.
#pragma once

#include <vector>

namespace braid {

// When to skip an evaluation after its first block. What that block added to its tokens is compared
// with an earlier step: sum |difference| / sum |earlier|.
enum class CacheMode {
  kOff,
  kFirstBlock,   // if the change since the last full evaluation is below the threshold
  kAccumulated,  // if the step-to-step changes since then, each through the polynomial, sum to
                 // less: TeaCache's rule (Liu et al., 2024)
};

struct CacheOptions {
  CacheMode mode = CacheMode::kOff;
  double threshold = 0.1;
  int most_in_a_row = 3;  // evaluations skipped in a row, 1 or more
  // Coefficients applied to the change, highest power first: finite, and at least one.
  std::vector<double> polynomial = {1.0, 0.0};
};

}  // namespace braid
