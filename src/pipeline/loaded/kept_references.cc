#include "pipeline/loaded/kept_references.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

Tokens none_of(Tokens tokens) {
  const auto none = [](Tensor& x, std::int64_t dim) {
    if (x.defined()) x = x.narrow(dim, 0, 0);
  };
  none(tokens.x_BLC, 1);
  none(tokens.ids_LA, 0);
  none(tokens.is_pad_L, 0);
  none(tokens.span_L2, 0);
  none(tokens.rope.cos, 0);
  none(tokens.rope.sin, 0);
  return tokens;
}

}  // namespace

DenoiserInput prefix_of(DenoiserInput in) {
  in.noise = none_of(in.noise);
  if (in.extra_BLC.defined()) in.extra_BLC = in.extra_BLC.narrow(1, 0, 0);
  in.watch = {};
  return in;
}

DenoiserInput behind_prefix(DenoiserInput in) {
  in.text = none_of(in.text);
  in.references.clear();
  return in;
}

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

void KeptReferences::set_use(ReferenceKvCache::Use use, ReferenceKvCache::Of of) {
  for (const auto& part : parts_) part->set_use(use, of);
  ++changes_;
}

void KeptReferences::keep(const DenoiserInput& references) {
  constexpr auto kOf = ReferenceKvCache::Of::kReferences;
  set_use(ReferenceKvCache::Use::kKeep, kOf);
  (void)predict_(std::vector(std::size_t(branches_), references));
  set_use(ReferenceKvCache::Use::kAttend, kOf);
}

void KeptReferences::keep_prefixes(const std::vector<DenoiserInput>& branches) {
  constexpr auto kOf = ReferenceKvCache::Of::kPrefix;
  set_use(ReferenceKvCache::Use::kKeep, kOf);
  std::vector<DenoiserInput> prefixes;
  for (const auto& branch : branches) prefixes.push_back(prefix_of(branch));
  (void)predict_(prefixes);
  set_use(ReferenceKvCache::Use::kAttend, kOf);
}

void KeptReferences::forget() {
  set_use(ReferenceKvCache::Use::kNone, ReferenceKvCache::Of::kReferences);
}

}  // namespace braid
