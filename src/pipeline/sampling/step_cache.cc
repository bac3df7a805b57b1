#include "pipeline/sampling/step_cache.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "parallel/regions.h"

namespace braid {
namespace {

// Appends a row to the state that says whether the middle is skipped.
Tensor with_decision(const Tensor& state_BSC, bool is_left_out) {
  const auto row = at::full({state_BSC.size(0), 1, state_BSC.size(2)}, is_left_out ? 1.0 : 0.0,
                            state_BSC.options());
  return at::cat({state_BSC, row}, 1);
}

bool decision_of(const Tensor& state_BSC) {
  return state_BSC.select(1, state_BSC.size(1) - 1).flatten()[0].item<double>() != 0;
}

Tensor without_decision(const Tensor& state_BSC) {
  return state_BSC.narrow(1, 0, state_BSC.size(1) - 1);
}

std::int64_t batch_of(const DenoiserInput& in) {
  std::int64_t batch = 1;
  visit_tensors(in, [&](const Tensor& x, const DimRoles& dims) {
    if (dims.batch != DimRoles::kNone) batch = std::max(batch, x.size(dims.batch));
  });
  return batch;
}

void check_polynomial(const std::vector<double>& coefficients) {
  require(!coefficients.empty(), "the cache's polynomial should have coefficients, it has none");
  for (const double coefficient : coefficients)
    require(std::isfinite(coefficient), "the cache's polynomial should have finite coefficients, ",
            "one is ", coefficient);
}

}  // namespace

PredictPart one_after_another(CachedParts parts) {
  return [parts = std::move(parts)](const DenoiserInput& in, const Tensor& state) {
    auto x = state;
    for (const auto* const part : {&parts.input, &parts.first, &parts.middle, &parts.output})
      if (*part) x = (*part)(in, x);
    return x;
  };
}

PredictPart picture_by_picture(PredictPart part) {
  return [part = std::move(part)](const DenoiserInput& in, const Tensor& state) {
    const auto batch = batch_of(in);
    if (batch == 1) return part(in, state);
    std::vector<Tensor> made;
    for (std::int64_t i = 0; i < batch; ++i)
      made.push_back(part(picture_of(in, i), state.defined() ? state.narrow(0, i, 1) : state));
    return at::cat(made);
  };
}

StepCache::StepCache(const CacheOptions& options, const Mesh& mesh)
    : options_(options),
      context_(mesh.context),
      tp_(mesh.tp),
      is_first_(mesh.pp.rank() == 0),
      is_last_(mesh.pp.rank() == mesh.pp.size() - 1) {
  require(std::isfinite(options.threshold) && options.threshold >= 0,
          "the threshold of the cache should be 0 or more, it is ", options.threshold);
  require(options.most_in_a_row >= 1,
          "the cache should leave out at least 1 evaluation in a row, not ", options.most_in_a_row);
  if (options.mode == CacheMode::kAccumulated) check_polynomial(options.polynomial);
}

PredictPart StepCache::over(CachedParts parts) {
  return picture_by_picture(
      [this, parts = std::move(parts)](const DenoiserInput& in, const Tensor& state) {
        return evaluate(parts, in, is_first_ ? Tensor() : state);
      });
}

// The change over all tokens, the same number on all ranks.
double StepCache::change(const Tensor& before, const Tensor& now) const {
  const auto earlier = before.to(at::kFloat);
  const auto sums = at::stack({(now - earlier).abs().sum(), earlier.abs().sum()});
  const auto all = tp_.broadcast(context_.all_reduce(sums), 0).to(at::kCPU);
  const auto of = all[1].item<double>();
  return of > 0 ? all[0].item<double>() / of : HUGE_VAL;
}

double StepCache::weighed(double change) const {
  double sum = 0;
  for (const double factor : options_.polynomial) sum = sum * change + factor;
  return sum;
}

bool StepCache::decide(Item& item, const Tensor& added_BSC) const {
  const bool is_begun = item.first_BSC.defined();
  const bool accumulates = options_.mode == CacheMode::kAccumulated;
  if (is_begun) {
    const auto now = change(item.first_BSC, added_BSC);
    item.sum = accumulates ? item.sum + weighed(now) : now;
  }
  const bool is_same =
      is_begun && item.in_a_row < options_.most_in_a_row && item.sum < options_.threshold;
  if (!is_same) item.sum = 0;
  if (!is_same || accumulates) item.first_BSC = added_BSC;
  return is_same;
}

bool StepCache::has_seen(int picture) const {
  const auto item = items_.lower_bound({picture, 0});
  return item != items_.end() && item->first.first == picture;
}

const std::vector<int>& StepCache::full_steps(int picture) const {
  check(has_seen(picture), "the cache has seen no picture ", picture);
  return items_.lower_bound({picture, 0})->second.full;
}

Tensor StepCache::evaluate(const CachedParts& parts, const DenoiserInput& in, const Tensor& state) {
  auto& item = items_[{in.step.picture, in.step.branch}];
  auto x = state;
  bool is_left_out = false;
  if (is_first_) {
    const auto begun = parts.input(in, state);
    x = parts.first(in, begun);
    is_left_out = decide(item, x - begun);
  } else {
    is_left_out = decision_of(state);
    x = without_decision(state);
  }
  if (is_left_out) {
    x = x + item.middle_BSC;
    ++item.in_a_row;
  } else {
    const auto made = parts.middle(in, x);
    item.middle_BSC = made - x;
    item.in_a_row = 0;
    item.full.push_back(in.step.number);
    x = made;
  }
  return is_last_ ? parts.output(in, x) : with_decision(x, is_left_out);
}

}  // namespace braid
