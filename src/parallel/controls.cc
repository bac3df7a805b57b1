#include "parallel/controls.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

// The controls of some pictures, and the noise that goes with them.
DenoiserInput pictures_of(DenoiserInput in, Share share) {
  visit_tensors(in, [&](Tensor& x, const DimRoles& dims) {
    if (dims.batch != DimRoles::kNone) x = x.narrow(dims.batch, share.begin, share.count);
  });
  in.step.picture += int(share.begin);
  return in;
}

// Joins the residuals [B N C] of one kind of block, which each stage has for its own pictures.
std::vector<Tensor> join_pictures(const Group& stages, int num_sharing,
                                  const std::vector<Tensor>& mine, const Tensor& nothing) {
  const auto stacked = mine.empty() ? nothing : at::stack(mine);
  std::vector<Tensor> shares;
  for (int stage = 0; stage < num_sharing; ++stage)
    shares.push_back(stages.broadcast(stage == stages.rank() ? stacked : nothing, stage));
  return shares.front().numel() == 0 ? std::vector<Tensor>() : at::cat(shares, 1).unbind();
}

BlockResiduals follow_together(const Group& stages, const Follow& follow, const DenoiserInput& in) {
  if (stages.size() == 1) return follow(in);
  const auto batch = in.noise.x_BLC.size(0);
  const auto share = share_of(batch, stages.rank(), stages.size());
  const auto mine = share.count > 0 ? follow(pictures_of(in, share)) : BlockResiduals();
  stages.await();
  const auto nothing = at::empty({0}, in.noise.x_BLC.options());
  const int num_sharing = int(std::min<std::int64_t>(batch, stages.size()));
  return {.doubles = join_pictures(stages, num_sharing, mine.doubles, nothing),
          .singles = join_pictures(stages, num_sharing, mine.singles, nothing)};
}

}  // namespace

PredictAll with_controls(Group stages, Follow follow, PredictAll inner) {
  if (!follow) return inner;
  return [=](const std::vector<DenoiserInput>& inputs) {
    if (inputs.front().controls.empty()) return inner(inputs);
    const auto residuals = follow_together(stages, follow, inputs.front());
    auto followed = inputs;
    for (auto& in : followed) {
      in.residuals = residuals;
      in.controls.clear();
    }
    return inner(followed);
  };
}

}  // namespace braid
