// Which of the compiled loops this machine can run.
#include "base/cpu.h"
#include "ops/rows.h"

namespace braid::ops {

namespace baseline {
extern const RowKernels kFloat32, kBfloat16;
}
namespace avx2 {
extern const RowKernels kFloat32, kBfloat16;
}
namespace avx512 {
extern const RowKernels kFloat32, kBfloat16;
}

const RowKernels& row_kernels(RowType type) {
  enum class Isa { kBaseline, kAvx2, kAvx512 };
  static const Isa isa = [] {
    const auto cpu = read_cpu();
    const bool is_avx2 = cpu.has("avx2") && cpu.has("fma");
    const bool is_avx512 =
        cpu.has("avx512f") && cpu.has("avx512bw") && cpu.has("avx512vl") && cpu.has("avx512dq");
    return is_avx2 ? is_avx512 ? Isa::kAvx512 : Isa::kAvx2 : Isa::kBaseline;
  }();
  const bool is_float = type == RowType::kFloat32;
  switch (isa) {
    case Isa::kAvx512:
      return is_float ? avx512::kFloat32 : avx512::kBfloat16;
    case Isa::kAvx2:
      return is_float ? avx2::kFloat32 : avx2::kBfloat16;
    case Isa::kBaseline:
      break;
  }
  return is_float ? baseline::kFloat32 : baseline::kBfloat16;
}

}  // namespace braid::ops
