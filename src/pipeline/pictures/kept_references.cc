#include "pipeline/pictures/kept_references.h"

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
  return tokens;
}

}  // namespace

DenoiserInput prefix_of(DenoiserInput in) {
  in.noise = none_of(in.noise);
  if (in.beside_BLC.defined()) in.beside_BLC = in.beside_BLC.narrow(1, 0, 0);
  in.watch = {};
  return in;
}

DenoiserInput behind_prefix(DenoiserInput in) {
  in.text = none_of(in.text);
  in.references.clear();
  return in;
}

DenoiserPart KeptReferences::attending(const std::function<DenoiserPart(KeptKeys*)>& load) {
  parts_.push_back(std::make_unique<KeptKeys>());
  auto part = load(parts_.back().get());
  part.predict = parts_.back()->counted(std::move(part.predict));
  return part;
}

void KeptReferences::set_model(PredictAll predict, int branches) {
  predict_ = std::move(predict);
  branches_ = branches;
}

void KeptReferences::set_use(KeptKeys::Use use, KeptKeys::Of of) {
  for (const auto& part : parts_) part->set_use(use, of);
  ++changes_;
}

void KeptReferences::keep(const DenoiserInput& references) {
  constexpr auto kOf = KeptKeys::Of::kReferences;
  set_use(KeptKeys::Use::kKeep, kOf);
  (void)predict_(std::vector(std::size_t(branches_), references));
  set_use(KeptKeys::Use::kAttend, kOf);
}

void KeptReferences::keep_prefixes(const std::vector<DenoiserInput>& branches) {
  constexpr auto kOf = KeptKeys::Of::kPrefix;
  set_use(KeptKeys::Use::kKeep, kOf);
  std::vector<DenoiserInput> prefixes;
  for (const auto& branch : branches) prefixes.push_back(prefix_of(branch));
  (void)predict_(prefixes);
  set_use(KeptKeys::Use::kAttend, kOf);
}

void KeptReferences::forget() { set_use(KeptKeys::Use::kNone, KeptKeys::Of::kReferences); }

}  // namespace braid
