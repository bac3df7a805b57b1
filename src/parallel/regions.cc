#include "parallel/regions.h"

#include <ATen/ATen.h>

#include <string_view>

#include "base/error.h"
#include "parallel/refusals.h"

namespace braid {
namespace {

void check_enough(const char* kind, std::int64_t tokens, const Shares& ranks) {
  require(tokens == 0 || least_share(tokens, ranks) > 0, too_few_tokens(ranks, kind, tokens));
}

std::vector<std::int64_t> image_runs(const DenoiserInput& in) {
  std::vector<std::int64_t> runs = {in.noise.x_BLC.size(1)};
  for (const auto& reference : in.references) runs.push_back(reference.x_BLC.size(1));
  return runs;
}

// A rank has a share of each run of the tokens that a residual is added to. It may end behind the
// noise.
Tensor share_of_residual(const Tensor& x_BNC, const std::vector<std::int64_t>& runs,
                         const Group& ranks) {
  std::vector<Tensor> shares;
  std::int64_t begin = 0;
  for (const auto run : runs) {
    if (begin == x_BNC.size(1)) break;
    shares.push_back(take_share(x_BNC.narrow(1, begin, run), 1, ranks));
    begin += run;
  }
  return shares.size() == 1 ? shares.front() : at::cat(shares, 1);
}

DenoiserInput share_of_tokens(DenoiserInput in, const Group& ranks, TextTokens text) {
  const auto runs = image_runs(in);
  visit_tensors(in, [&](Tensor& x, const DimRoles& dims) {
    if (dims.tokens == DimRoles::kNone) return;
    if (text == TextTokens::kCross && dims.name == std::string_view("text")) return;
    if (dims.name == std::string_view(kResidual)) {
      x = share_of_residual(x, runs, ranks);
      return;
    }
    check_enough(dims.name, x.size(dims.tokens), ranks.shares());
    x = take_share(x, dims.tokens, ranks);
  });
  return in;
}

}  // namespace

DenoiserInput picture_of(DenoiserInput in, std::int64_t picture) {
  visit_tensors(in, [&](Tensor& x, const DimRoles& dims) {
    if (dims.batch != DimRoles::kNone) x = x.narrow(dims.batch, picture, 1);
  });
  in.step.picture += int(picture);
  return in;
}

PredictAll one_by_one(Predict predict) {
  return [=](const std::vector<DenoiserInput>& inputs) {
    std::vector<Tensor> velocities;
    for (const auto& in : inputs) velocities.push_back(predict(in));
    return velocities;
  };
}

PredictAll split_tokens(Group ranks, PredictAll inner, TextTokens text) {
  if (ranks.size() == 1) return inner;
  return [=](const std::vector<DenoiserInput>& inputs) {
    std::vector<DenoiserInput> shares;
    for (const auto& in : inputs) shares.push_back(share_of_tokens(in, ranks, text));
    auto velocities = inner(shares);
    for (auto& velocity : velocities) velocity = ranks.all_gather(velocity, 1);
    return velocities;
  };
}

PredictAll split_cfg(Group ranks, PredictAll inner) {
  if (ranks.size() == 1) return inner;
  return [=](const std::vector<DenoiserInput>& inputs) {
    const auto count = std::int64_t(inputs.size());
    require(count >= ranks.size(), too_few_branches(ranks.size(), count));
    std::vector<DenoiserInput> mine;
    for (auto i = std::int64_t(ranks.rank()); i < count; i += ranks.size())
      mine.push_back(inputs[std::size_t(i)]);
    const auto made = at::stack(inner(mine));
    ranks.await();  // branches are of unequal lengths, and a cache leaves out parts of one of them
    const auto all = ranks.all_gather(made, 0);  // rank 0's, then rank 1's, ...
    std::vector<Tensor> velocities(inputs.size());
    std::int64_t at = 0;
    for (int rank = 0; rank < ranks.size(); ++rank)
      for (auto i = std::int64_t(rank); i < count; i += ranks.size())
        velocities[std::size_t(i)] = all[at++];
    return velocities;
  };
}

// One by one: branches of unequal lengths cannot be joined.
PredictAll own_branches(Group ranks, PredictAll inner) {
  return [=](const std::vector<DenoiserInput>& inputs) {
    std::vector<Tensor> all(inputs.size());
    for (auto i = std::size_t(ranks.rank()); i < inputs.size(); i += std::size_t(ranks.size()))
      all[i] = inner({inputs[i]}).front();
    return all;
  };
}

}  // namespace braid
