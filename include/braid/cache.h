// Steps whose evaluation of the transformer is mostly left out, for pictures in less time that are
// not quite the same.
#pragma once

#include <vector>

namespace braid {

// When an evaluation is left out but for its first block: what that block added to its tokens is
// compared with what it added in an earlier step, as sum |difference| / sum |earlier|.
enum class CacheMode {
  kOff,
  kFirstBlock,   // the change since the last full evaluation is below the threshold
  kAccumulated,  // the changes from step to step since then, each through the polynomial, sum up to
                 // less: TeaCache's rule (Liu et al., 2024)
};

struct CacheOptions {
  CacheMode mode = CacheMode::kOff;
  double threshold = 0.1;
  int most_in_a_row = 3;                        // evaluations left out, 1 or more
  std::vector<double> polynomial = {1.0, 0.0};  // of the change, the highest power first
};

}  // namespace braid
