#include "pipeline/loaded/once_per_picture.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

// Neighbours of one noise level share what is computed for it.
bool begins_level(const std::vector<DenoiserInput>& steps, std::size_t i) {
  return i == 0 || steps[i].step.timestep != steps[i - 1].step.timestep;
}

std::int64_t bytes_of(const Rope& rope) {
  return rope.cos.defined() ? std::int64_t(rope.cos.nbytes() + rope.sin.nbytes()) : 0;
}

}  // namespace

std::vector<DenoiserInput> with_all_timesteps(const std::vector<DenoiserInput>& steps) {
  std::vector<Tensor> timesteps, targets;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!begins_level(steps, i)) continue;
    timesteps.push_back(steps[i].timestep_B);
    if (steps[i].target_timestep_B.defined()) targets.push_back(steps[i].target_timestep_B);
  }
  const auto timesteps_SB = at::stack(timesteps);
  const auto targets_SB = targets.empty() ? Tensor() : at::stack(targets);
  std::vector<DenoiserInput> pictures;
  for (std::int64_t i = 0; i < timesteps_SB.size(1); ++i) {
    pictures.push_back(picture_of(steps.front(), i));
    pictures.back().timestep_B = timesteps_SB.select(1, i);
    if (targets_SB.defined()) pictures.back().target_timestep_B = targets_SB.select(1, i);
  }
  return pictures;
}

Tensor as_batch(at::TensorList made_SM) {
  return made_SM.size() == 1 ? made_SM.front().unsqueeze(1) : at::stack(made_SM, /*dim=*/1);
}

OncePerPicture::OncePerPicture(const Denoisers& denoisers,
                               const std::vector<std::vector<DenoiserInput>>& steps, Prefix prefix,
                               const std::function<void()>& on_modulated)
    : denoisers_(denoisers), by_denoiser_(denoisers.list().size()) {
  std::vector<std::map<int, Steps>> served(by_denoiser_.size());
  for (const auto& step : steps)
    for (const auto& branch : step)
      served[denoisers.serving(branch.step)][branch.step.branch].push_back(branch);
  const auto& list = denoisers.list();
  for (std::size_t i = 0; i < served.size(); ++i)
    if (!served[i].empty()) modulate(*list[i].denoiser, served[i], by_denoiser_[i]);
  on_modulated();
  for (std::size_t i = 0; i < served.size(); ++i)
    if (!served[i].empty()) {
      make_ropes(*list[i].denoiser, served[i], by_denoiser_[i]);
      refine(*list[i].denoiser, served[i], by_denoiser_[i]);
    }
  if (prefix == Prefix::kInEveryStep) return;
  kept_.emplace(denoisers);
  for (std::size_t i = 0; i < served.size(); ++i)
    if (!served[i].empty()) keep_prefixes(*list[i].denoiser, served[i]);
}

// All pictures of all branches at once, as weights may have to come from disk.
void OncePerPicture::modulate(const Denoiser& denoiser, const std::map<int, Steps>& steps,
                              std::map<int, Branch>& branches) const {
  if (!denoiser.modulate()) return;
  std::vector<DenoiserInput> pictures;
  for (const auto& [branch, own] : steps)
    for (auto& picture : with_all_timesteps(own)) pictures.push_back(std::move(picture));
  const auto made_SM = denoiser.modulate()(pictures);
  const auto batch = made_SM.size() / steps.size();
  std::size_t first = 0;
  for (const auto& [branch, own] : steps) {
    auto& made = branches[branch];
    made.modulations_SBM = as_batch(at::TensorList(&made_SM[first], batch));
    std::int64_t row = -1;
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (begins_level(own, i)) ++row;
      made.rows.emplace(own[i].step.number, row);
    }
    first += batch;
  }
}

// Positions are the same in every step.
void OncePerPicture::make_ropes(const Denoiser& denoiser, const std::map<int, Steps>& steps,
                                std::map<int, Branch>& branches) const {
  if (denoiser.rope_axes().widths.empty()) return;
  for (const auto& [branch, own] : steps) {
    auto in = own.front();
    braid::make_ropes(in, denoiser.rope_axes());
    auto& made = branches[branch];
    made.noise = in.noise.rope;
    made.text = in.text.rope;
    for (const auto& reference : in.references) made.references.push_back(reference.rope);
  }
}

void OncePerPicture::refine(const Denoiser& denoiser, const std::map<int, Steps>& steps,
                            std::map<int, Branch>& branches) const {
  if (!denoiser.refine()) return;
  std::vector<DenoiserInput> first;
  for (const auto& [branch, own] : steps) first.push_back(with_made(own.front()));
  const auto refined = denoiser.refine()(first);
  for (std::size_t b = 0; b < first.size(); ++b)
    branches[first[b].step.branch].refined_BTC = refined[b];
}

// Those of the first step that the denoiser serves: they depend on none.
void OncePerPicture::keep_prefixes(const Denoiser& denoiser,
                                   const std::map<int, Steps>& steps) const {
  std::vector<DenoiserInput> first;
  for (const auto& [branch, own] : steps) first.push_back(with_made(own.front()));
  denoiser.references().keep_prefixes(first);
}

OncePerPicture::Bytes OncePerPicture::bytes() const {
  Bytes sum;
  for (const auto& branches : by_denoiser_)
    for (const auto& [number, branch] : branches) {
      if (branch.modulations_SBM.defined())
        sum.modulations += std::int64_t(branch.modulations_SBM.nbytes());
      if (branch.refined_BTC.defined()) sum.text += std::int64_t(branch.refined_BTC.nbytes());
      sum.ropes += bytes_of(branch.noise) + bytes_of(branch.text);
      for (const auto& reference : branch.references) sum.ropes += bytes_of(reference);
    }
  return sum;
}

DenoiserInput OncePerPicture::with_made(DenoiserInput in) const {
  const auto& of_denoiser = by_denoiser_[denoisers_.serving(in.step)];
  const auto found = of_denoiser.find(in.step.branch);
  if (found == of_denoiser.end()) return in;
  const auto& made = found->second;
  in.refined_BTC = made.refined_BTC;
  in.noise.rope = made.noise;
  in.text.rope = made.text;
  for (std::size_t i = 0; i < made.references.size(); ++i)
    in.references[i].rope = made.references[i];
  if (made.modulations_SBM.defined())
    in.modulations_BM = made.modulations_SBM[made.rows.at(in.step.number)];
  return in;
}

std::vector<DenoiserInput> OncePerPicture::completed(std::vector<DenoiserInput> branches) const {
  for (auto& in : branches) {
    in = with_made(std::move(in));
    if (kept_) in = behind_prefix(std::move(in));
  }
  return branches;
}

}  // namespace braid
