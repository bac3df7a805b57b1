#include "pipeline/families/description.h"

namespace braid {

bool Served::includes(const StepInfo& step, int all) const {
  const auto timestep_of = [&](double noise) { return static_cast<float>(noise * all); };
  const bool is_in_range = (from <= 0 || step.timestep >= timestep_of(from)) &&
                           (to >= 1 || step.timestep < timestep_of(to));
  return is_in_range &&
         (branches == BranchSet::kAll || (branches == BranchSet::kPrompt) == (step.branch == 0));
}

Quantize Part::form(const Memory& memory) const {
  if (role == Role::kDenoiser || role == Role::kControl) return memory.quantize;
  return role == Role::kText && is_large ? memory.quantize_text : Quantize::kNone;
}

std::vector<std::string> Part::dense_layers(const std::vector<std::string>& named) const {
  const bool is_reached = role == Role::kDenoiser || role == Role::kControl;
  return is_reached ? named : std::vector<std::string>();
}

}  // namespace braid
