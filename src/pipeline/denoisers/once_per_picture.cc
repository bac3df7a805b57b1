#include "pipeline/denoisers/once_per_picture.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

// The pictures of a branch, each with the timesteps of its steps.
std::vector<DenoiserInput> with_all_timesteps(const std::vector<DenoiserInput>& steps) {
  std::vector<Tensor> timesteps;
  for (const auto& in : steps) timesteps.push_back(in.timestep_B);
  const auto timesteps_SB = at::stack(timesteps);
  std::vector<DenoiserInput> pictures;
  for (std::int64_t i = 0; i < timesteps_SB.size(1); ++i) {
    pictures.push_back(picture_of(steps.front(), i));
    pictures.back().timestep_B = timesteps_SB.select(1, i);
  }
  return pictures;
}

// A batch of pictures, each [S M] -> [S B M].
Tensor as_batch(at::TensorList made_SM) {
  return made_SM.size() == 1 ? made_SM.front().unsqueeze(1) : at::stack(made_SM, /*dim=*/1);
}

}  // namespace

OncePerPicture::OncePerPicture(const Denoisers& denoisers,
                               const std::vector<std::vector<DenoiserInput>>& steps,
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
    if (!served[i].empty()) refine(*list[i].denoiser, served[i], by_denoiser_[i]);
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
    for (const auto& in : own) made.rows.emplace(in.step.number, std::int64_t(made.rows.size()));
    first += batch;
  }
}

void OncePerPicture::refine(const Denoiser& denoiser, const std::map<int, Steps>& steps,
                            std::map<int, Branch>& branches) const {
  if (!denoiser.refine()) return;
  std::vector<DenoiserInput> first;
  for (const auto& [branch, own] : steps) first.push_back(own.front());
  const auto refined = denoiser.refine()(first);
  for (std::size_t b = 0; b < first.size(); ++b)
    branches[first[b].step.branch].refined_BTC = refined[b];
}

std::vector<DenoiserInput> OncePerPicture::completed(std::vector<DenoiserInput> branches) const {
  for (auto& in : branches) {
    const auto& of_denoiser = by_denoiser_[denoisers_.serving(in.step)];
    const auto found = of_denoiser.find(in.step.branch);
    if (found == of_denoiser.end()) continue;
    const auto& made = found->second;
    in.refined_BTC = made.refined_BTC;
    if (made.modulations_SBM.defined())
      in.modulations_BM = made.modulations_SBM[made.rows.at(in.step.number)];
  }
  return branches;
}

}  // namespace braid
