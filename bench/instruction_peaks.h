// What the processor's instructions give while nothing but registers is read: no program on as many
// threads multiplies faster.
#pragma once

#include <c10/core/ScalarType.h>

#include <string>
#include <vector>

namespace braid {

struct InstructionPeak {
  std::string name;        // "avx512 fma"
  at::ScalarType numbers;  // that it multiplies: kFloat, kBFloat16, kChar
  double per_second;       // products and sums, of all threads together
};

// One per instruction that this processor has, as BRAID_ISA limits it, for x86; else none. Each
// thread's rate is the best of some milliseconds: others use the machine too.
std::vector<InstructionPeak> instruction_peaks(int threads);

// The fastest that products of these numbers can be made of; bfloat16 may be widened to float32.
// Null where none was measured.
const InstructionPeak* peak_of(const std::vector<InstructionPeak>& peaks, at::ScalarType numbers);

}  // namespace braid
