#include "pipeline/pictures/kept_references.h"

namespace braid {

DenoiserPart KeptReferences::attending(const std::function<DenoiserPart(ReferenceKvCache*)>& load) {
  parts_.push_back(std::make_unique<ReferenceKvCache>());
  auto part = load(parts_.back().get());
  part.predict = parts_.back()->counted(std::move(part.predict));
  return part;
}

void KeptReferences::set_model(PredictAll predict, int branches) {
  predict_ = std::move(predict);
  branches_ = branches;
}

void KeptReferences::set_use(ReferenceKvCache::Use use) {
  for (const auto& part : parts_) part->set_use(use);
  ++changes_;
}

void KeptReferences::keep(const DenoiserInput& references) {
  set_use(ReferenceKvCache::Use::kKeep);
  (void)predict_(std::vector(std::size_t(branches_), references));
  set_use(ReferenceKvCache::Use::kAttend);
}

void KeptReferences::forget() { set_use(ReferenceKvCache::Use::kNone); }

}  // namespace braid
