// The peak rate of the processor's instructions on registers alone: with as many threads, no
// program multiplies faster.
#pragma once

#include <c10/core/ScalarType.h>

#include <string>
#include <vector>

namespace braid {

struct InstructionPeak {
  std::string name;        // "avx512 fma"
  at::ScalarType numbers;  // its inputs: kFloat, kBFloat16, kChar
  double per_second;       // products and sums, of all threads together
};

// One per instruction of this processor, as limited by BRAID_ISA, on x86; else none. Each thread's
// rate is the best of several milliseconds, their sum that of several rounds: other processes use
// the machine too.
std::vector<InstructionPeak> instruction_peaks(int threads);

// The fastest for products of `numbers`; bfloat16 may be widened to float32. Null if none was
// measured.
const InstructionPeak* peak_of(const std::vector<InstructionPeak>& peaks, at::ScalarType numbers);

}  // namespace braid
