#include "nn/denoiser_part.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

// `next` gets the text of `before`; either may be empty.
PredictPart one_after_the_other(PredictPart before, PredictPart next) {
  if (!before || !next) return next ? next : before;
  return [before = std::move(before), next = std::move(next)](const DenoiserInput& in,
                                                              const Tensor& text_BTC) {
    return next(in, before(in, text_BTC));
  };
}

}  // namespace

PredictPart joined_to(DenoiserPart& whole, DenoiserPart part) {
  whole.text = part.text;
  whole.rope_axes = part.rope_axes;
  whole.refine = one_after_the_other(std::move(whole.refine), part.refine);
  if (!part.modulate) return part.predict;
  if (!whole.condition) whole.condition = part.condition;
  const auto begin = whole.num_modulations, count = part.num_modulations;
  whole.num_modulations += count;
  whole.modulate = [before = std::move(whole.modulate), modulate = part.modulate](
                       const std::vector<Tensor>& conditions_SE,
                       const std::function<void()>& before_layer) {
    auto made = modulate(conditions_SE, before_layer);
    if (!before) return made;
    const auto first = before(conditions_SE, before_layer);
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = at::cat({first[i], made[i]}, -1);
    return made;
  };
  return [=, predict = std::move(part.predict)](DenoiserInput in, const Tensor& state) {
    in.modulations_BM = in.modulations_BM.narrow(-1, begin, count);
    return predict(in, state);
  };
}

}  // namespace braid
