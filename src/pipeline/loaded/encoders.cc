#include "pipeline/loaded/encoders.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace braid {
namespace {

// Tensor parallel ranks are neighbours; the first rank's group comes first.
std::unique_ptr<const TextEncoders> load_text(const Loading& loading, const Warn& warn) {
  auto load = loading.options;
  if (loading.asked().layout.text == TextRanks::kShared) load.tensor_parallel = loading.mesh.tp;
  if (loading.mesh.world.rank() >= load.tensor_parallel.size()) return {};
  load.paging = loading.offloaded->text();  // the encoders share their slots
  const auto weights = [&](const Part& part) {
    return loading.weights->of(part, part.quantized(load, loading.asked().memory));
  };
  return loading.family().load_text(loading.deployment.files->folder, loading.device(), weights,
                                    warn);
}

}  // namespace

Encoders::Encoders(const Loading& loading, const Warn& warn)
    : files_(loading.deployment.files),
      family_(loading.deployment.family),
      weights_(loading.weights),
      mesh_(loading.mesh),
      encoding_(picture_encoding(loading)),
      like_(encoding_.like),
      text_(load_text(loading, warn)) {}

Condition Encoders::encode_now(const Prompt& prompt, int max_sequence_length,
                               const Warn& warn) const {
  if (text_) return text_->encode(prompt, max_sequence_length, warn);
  const auto nothing = at::empty({0}, like_);
  return {.text_BTC = nothing, .pooled_BC = nothing};
}

EncodedKey Encoders::key_of(const Prompt& prompt, int max_sequence_length) const {
  auto adapters = weights_->adapters();
  const auto parts = family_->text_parts();
  const bool changes_text = std::any_of(parts.begin(), parts.end(), [&](const Part* part) {
    return adapts(adapters, *family_, *part);
  });
  if (!changes_text) adapters.clear();
  return key_of_prompt(prompt, max_sequence_length, adapters);
}

// Only the first rank remembers, and says whether it does: tensor parallel ranks may encode
// together.
Condition Encoders::encode_or_recall(const Prompt& prompt, int max_sequence_length,
                                     const Warn& warn) const {
  auto& encoded = *encoding_.encoded;
  if (!encoded.is_on()) return encode_now(prompt, max_sequence_length, warn);
  const bool is_first = mesh_.world.rank() == 0;
  auto key = is_first ? key_of(prompt, max_sequence_length) : EncodedKey();
  const auto* const known = is_first ? encoded.find(key) : nullptr;
  mesh_.world.await();
  const auto is_known =
      mesh_.world.broadcast(at::full({1}, std::int64_t(known != nullptr), at::kLong), 0);
  if (is_known.item<std::int64_t>() == 0) {
    std::vector<std::string> warnings;
    const auto keep_warning = [&](const std::string& sentence) {
      warnings.push_back(sentence);
      warn(sentence);
    };
    const auto made = encode_now(prompt, max_sequence_length, keep_warning);
    if (is_first)
      encoded.keep(std::move(key), {.tensors = {made.text_BTC, made.pooled_BC, made.places_R},
                                    .warnings = warnings});
    return made;
  }
  const auto nothing = at::empty({0}, like_);
  if (!known) return {.text_BTC = nothing, .pooled_BC = nothing};
  for (const auto& sentence : known->warnings) warn(sentence);
  const auto here = [&](const Tensor& x) { return x.defined() ? x.to(like_.device()) : x; };
  return {.text_BTC = here(known->tensors[0]),
          .pooled_BC = here(known->tensors[1]),
          .places_R = here(known->tensors[2])};
}

// Warnings are told where the other ranks wait without a deadline: tensor parallel ones encode,
// too.
Condition Encoders::encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const {
  std::vector<std::string> warnings;
  const auto keep_warning = [&](const std::string& sentence) { warnings.push_back(sentence); };
  const auto mine = encode_or_recall(prompt, max_sequence_length, keep_warning);
  for (const auto& sentence : warnings)
    if (warn) warn(sentence);
  mesh_.world.await();
  Condition all{.text_BTC = mesh_.world.broadcast(mine.text_BTC, 0), .pooled_BC = {}};
  if (family_->shape().pooled_width > 0) all.pooled_BC = mesh_.world.broadcast(mine.pooled_BC, 0);
  const bool has_places =
      family_->shape().text == TextTokens::kPrefix && !prompt.pictures_13HW.empty();
  if (!has_places) return all;
  const auto no_places = at::empty({0}, at::TensorOptions(at::kLong).device(like_.device()));
  all.places_R = mesh_.world.broadcast(
      mine.places_R.defined() ? mine.places_R.to(like_.device()) : no_places, 0);
  return all;
}

std::vector<Tensor> Encoders::embed_pictures(const std::vector<Tensor>& pictures) const {
  return encoding_.encode(pictures, "embedded", [&] {
    return family_->load_picture_embedder([&](const Part& part) {
      return Weights(source_of_part(*family_, part, files_.get(), {}).tensors,
                     {.dtype = like_.dtype().toScalarType(),
                      .device = like_.device(),
                      .on_bytes = [world = mesh_.world](std::int64_t) { world.poll(); }});
    });
  });
}

}  // namespace braid
