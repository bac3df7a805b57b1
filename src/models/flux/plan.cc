#include "models/flux/plan.h"

#include "base/error.h"

namespace braid {

Plan flux_plan(const FluxConfig& c, int size, SharedModulation modulation) {
  require(c.num_heads % size == 0, "tensor parallelism over ", size, " devices cannot share the ",
          c.num_heads, " heads of the transformer evenly");
  const auto h = c.hidden(), m = c.mlp_hidden();
  Plan plan = {
      {"double_blocks.*.*.qkv", column_parallel({h, h, h})},
      {"double_blocks.*.*.proj", row_parallel()},
      {"double_blocks.*.*.0", column_parallel()},
      {"double_blocks.*.*.2", row_parallel()},
      {"single_blocks.*.linear1", column_parallel({h, h, h, m})},
      {"single_blocks.*.linear2", row_parallel({h, m})},  // its input is [attention | mlp]
  };
  if (modulation == SharedModulation::kNo) return plan;
  plan.push_back({"double_blocks.*.*.lin", column_parallel_gathered()});
  plan.push_back({"single_blocks.*.modulation.lin", column_parallel_gathered()});
  plan.push_back({"final_layer.adaLN_modulation.1", column_parallel_gathered()});
  return plan;
}

}  // namespace braid
