#include "serve/loaded_models.h"

#include <algorithm>

namespace braid::serve {

bool LoadedModels::fits_beside(std::size_t model) const {
  if (loaded_.empty()) return true;
  if (budget_.device == 0 && budget_.host == 0) return false;
  auto sum = needs_[model];
  for (const auto other : loaded_) {
    sum.device += needs_[other].device;
    sum.host += needs_[other].host;
  }
  return (budget_.device == 0 || sum.device <= budget_.device) &&
         (budget_.host == 0 || sum.host <= budget_.host);
}

std::vector<std::size_t> LoadedModels::enter(std::size_t model) {
  std::vector<std::size_t> leaving;
  const bool is_loaded = std::find(loaded_.begin(), loaded_.end(), model) != loaded_.end();
  while (!is_loaded && !fits_beside(model)) {
    leaving.push_back(loaded_.back());
    loaded_.pop_back();
  }
  loaded_.remove(model);
  loaded_.push_front(model);
  return leaving;
}

void LoadedModels::leave(std::size_t model) { loaded_.remove(model); }

}  // namespace braid::serve
