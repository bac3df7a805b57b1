#include "pipeline/pictures/kept_references.h"

namespace braid {

PredictPart KeptReferences::attending(const std::function<PredictPart(KeptKeys*)>& load) {
  parts_.push_back(std::make_unique<KeptKeys>());
  return parts_.back()->counted(load(parts_.back().get()));
}

void KeptReferences::set_model(PredictAll predict, int branches) {
  predict_ = std::move(predict);
  branches_ = branches;
}

void KeptReferences::set_use(KeptKeys::Use use) {
  for (const auto& part : parts_) part->set_use(use);
  ++changes_;
}

void KeptReferences::keep(const DenoiserInput& references) {
  set_use(KeptKeys::Use::kKeep);
  (void)predict_(std::vector(std::size_t(branches_), references));
  set_use(KeptKeys::Use::kAttend);
}

void KeptReferences::forget() { set_use(KeptKeys::Use::kNone); }

}  // namespace braid
