// ControlNets of a family, composed into what a transformer follows.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "nn/denoiser_part.h"
#include "pipeline/families/description.h"
#include "pipeline/families/family.h"
#include "pipeline/families/paged.h"

namespace braid {

template <class Net>
using PagedNets = std::shared_ptr<const std::vector<Paged<Net>>>;

// A width of a ControlNet, which should be its transformer's.
struct NetWidth {
  const char* of;  // "tokens"
  std::int64_t has, wants;
};

// Throws InputError naming the first width that differs. `folder` is the net's.
void check_widths(const std::string& folder, std::initializer_list<NetWidth> widths);

// The part of net number `number`, from 0 on, of `count`, with its role, folder and label.
Part control_part(std::size_t number, std::size_t count);

// Loads a net for each config, from the part of the same number.
template <class Net, class Config>
PagedNets<Net> load_nets(const std::vector<Config>& configs, const std::vector<const Part*>& parts,
                         const WeightsOf& weights_of, const Attend& attend) {
  std::vector<Paged<Net>> loaded;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const auto w = weights_of(*parts[i]);
    loaded.push_back({.page = w.page(), .network = Net(configs[i], w, attend)});
  }
  return std::make_shared<const std::vector<Paged<Net>>>(std::move(loaded));
}

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
