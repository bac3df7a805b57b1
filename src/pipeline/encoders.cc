#include "pipeline/encoders.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

// Tensor parallel ranks are neighbours; the first rank's group comes first.
std::unique_ptr<const TextEncoders> load_text(const Loading& loading, const Warn& warn) {
  auto load = loading.options;
  if (loading.asked().layout.text == TextRanks::kShared) load.tensor_parallel = loading.mesh.tp;
  if (loading.mesh.world.rank() >= load.tensor_parallel.size()) return {};
  load.paging = loading.offloaded->text();  // the encoders share their slots
  const auto weights = [&](const Part& part) {
    auto own = load;
    if (part.is_large) own.quantize = loading.asked().memory.quantize_text;
    return loading.weights->of(part, own);
  };
  return loading.family().load_text(loading.deployment.files->folder, loading.device(), weights,
                                    warn);
}

}  // namespace

Encoders::Encoders(const Loading& loading, const Warn& warn)
    : files_(loading.deployment.files),
      family_(loading.deployment.family),
      mesh_(loading.mesh),
      like_(at::TensorOptions(loading.options.dtype).device(loading.device())),
      text_(load_text(loading, warn)) {}

Condition Encoders::encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const {
  const auto nothing = at::empty({0}, like_);
  const auto mine = text_ ? text_->encode(prompt, max_sequence_length, warn)
                          : Condition{.text_BTC = nothing, .pooled_BC = nothing};
  mesh_.world.await();
  Condition all{.text_BTC = mesh_.world.broadcast(mine.text_BTC, 0), .pooled_BC = {}};
  if (family_->shape().pooled_width > 0) all.pooled_BC = mesh_.world.broadcast(mine.pooled_BC, 0);
  return all;
}

std::vector<Tensor> Encoders::embed_pictures(const std::vector<Tensor>& pictures) const {
  return encode_on_first(mesh_, like_, pictures, [&] {
    return family_->load_picture_embedder([&](const Part& part) {
      return Weights(source_of_part(*family_, part, files_.get(), {}).tensors,
                     {.dtype = like_.dtype().toScalarType(), .device = like_.device()});
    });
  });
}

}  // namespace braid
