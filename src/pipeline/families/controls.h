// ControlNets of a family, composed into what a transformer follows.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "nn/denoiser_part.h"
#include "pipeline/families/paged.h"

namespace braid {

template <class Net>
using PagedNets = std::shared_ptr<const std::vector<Paged<Net>>>;

// Adds up the residuals of the same number, of the first `most`.
inline void add_up(std::vector<Tensor>& sums, std::vector<Tensor> residuals, std::size_t most) {
  residuals.resize(std::min(residuals.size(), most));
  if (sums.empty()) sums.resize(residuals.size());
  for (std::size_t i = 0; i < residuals.size(); ++i)
    sums[i] = sums[i].defined() ? sums[i] + residuals[i] : residuals[i];
}

// Evaluates each control of an input with its net; at most so many residuals of a kind are summed.
template <class Net>
Follow follow_with(const PagedNets<Net>& nets, std::size_t doubles, std::size_t singles) {
  return [=](const DenoiserInput& in) {
    BlockResiduals sum;
    for (const auto& control : in.controls) {
      const auto& [page, net] = (*nets)[std::size_t(control.net)];
      const auto in_use = page.use();
      auto made = net(in, control);
      add_up(sum.doubles, std::move(made.doubles), doubles);
      add_up(sum.singles, std::move(made.singles), singles);
    }
    return sum;
  };
}

// Controls::modulate.
template <class Net>
auto modulate_with(const PagedNets<Net>& nets) {
  return [=](const std::vector<DenoiserInput>& pictures, std::size_t control) {
    const auto& [page, net] = (*nets)[std::size_t(pictures.front().controls[control].net)];
    const auto in_use = page.use();
    std::vector<Tensor> conditions;
    for (const auto& in : pictures) conditions.push_back(net.condition(in, in.controls[control]));
    return net.modulations(conditions);
  };
}

}  // namespace braid
