#include "nn/modulations.h"

#include <ATen/ATen.h>

#include "base/error.h"

namespace braid {

ModulationsMade::ModulationsMade(std::vector<Tensor> conditions_SE, std::int64_t width,
                                 std::function<void()> before_layer)
    : conditions_SE_(std::move(conditions_SE)), before_layer_(std::move(before_layer)) {
  for (const auto& condition : conditions_SE_)
    made_SM_.push_back(at::empty({condition.size(0), width}, condition.options()));
}

void ModulationsMade::add(const std::vector<Tensor>& next) {
  const auto width = next.front().size(-1);
  for (std::size_t i = 0; i < next.size(); ++i)
    made_SM_[i].narrow(-1, begin_, width).copy_(next[i]);
  begin_ += width;
}

std::vector<Tensor> ModulationsMade::take() && {
  for (const auto& made : made_SM_)
    check(made.size(-1) == begin_, "of ", made.size(-1), " modulations ", begin_, " were made");
  return std::move(made_SM_);
}

Tensor Modulations::take(std::int64_t width) {
  check(all_BM_.defined(), "a step was asked for without the modulations of its blocks");
  const auto next = all_BM_.narrow(-1, begin_, width);
  begin_ += width;
  return next;
}

}  // namespace braid
