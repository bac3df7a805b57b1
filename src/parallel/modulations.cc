#include "parallel/modulations.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

// Joins the conditions of all pictures, one after another.
Tensor joined_conditions(const DenoiserPart& part, const std::vector<DenoiserInput>& pictures) {
  std::vector<Tensor> conditions;
  for (const auto& picture : pictures) conditions.push_back(part.condition(picture));
  return at::cat(conditions);
}

std::vector<DenoiserInput> each_picture(const DenoiserInput& in) {
  std::vector<DenoiserInput> pictures;
  for (std::int64_t i = 0; i < in.noise.x_BLC.size(0); ++i) pictures.push_back(picture_of(in, i));
  return pictures;
}

}  // namespace

Modulate modulate_over(Group stages, const DenoiserPart& part, std::function<void()> before_layer) {
  if (!part.modulate) return {};
  return [=](const std::vector<DenoiserInput>& pictures) {
    stages.await();  // stages may still be loading
    const auto nothing = at::empty({0}, pictures.front().noise.x_BLC.options());
    const auto mine = stages.rank() == 0 ? joined_conditions(part, pictures) : nothing;
    const auto all = stages.broadcast(mine, 0);
    return part.modulate(all.chunk(std::int64_t(pictures.size())), before_layer);
  };
}

PredictAll with_modulations(Modulate modulate, PredictAll inner) {
  if (!modulate) return inner;
  return [=](const std::vector<DenoiserInput>& inputs) {
    auto modulated = inputs;
    for (auto& in : modulated)
      if (!in.modulations_BM.defined()) in.modulations_BM = at::cat(modulate(each_picture(in)));
    return inner(modulated);
  };
}

Follow with_modulations(const Controls& controls) {
  if (!controls.modulate) return controls.follow;
  return [=](const DenoiserInput& in) {
    auto modulated = in;
    for (std::size_t i = 0; i < in.controls.size(); ++i) {
      auto& control = modulated.controls[i];
      if (!control.modulations_BM.defined())
        control.modulations_BM = at::cat(controls.modulate(each_picture(in), i));
    }
    return controls.follow(modulated);
  };
}

}  // namespace braid
