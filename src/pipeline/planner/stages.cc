#include "pipeline/planner/stages.h"

#include <algorithm>

namespace braid {

Stage stage_of(const FluxConfig& c, const Share& run) {
  const auto end = run.begin + run.count;
  const auto doubles = std::clamp<std::int64_t>(c.num_double - run.begin, 0, run.count);
  return {.num_double = doubles,
          .num_single = run.count - doubles,
          .is_first = run.begin == 0,
          .is_last = end == c.num_double + c.num_single,
          .first_block = run.begin};
}

Stage whole_transformer(const FluxConfig& c) {
  return stage_of(c, {.begin = 0, .count = c.num_double + c.num_single});
}

Parameters parameters_of(const Stage& stage, const FluxParameters& p) {
  auto sum = stage.num_double * p.double_block;
  sum += stage.num_single * p.single_block;
  if (stage.is_first) sum += p.embedders;
  if (stage.is_last) sum += p.last_layer;
  return sum;
}

}  // namespace braid
