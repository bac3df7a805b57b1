#include "models/qwen_image/modulators.h"

#include <ATen/ATen.h>

#include "models/flux/blocks.h"

namespace braid {
namespace {

constexpr std::int64_t kVectorsOfSide = 6;  // shift, scale and gate of attention, then of the MLP

}  // namespace

QwenImageModulator::QwenImageModulator(const Weights& w, const QwenImageConfig& c)
    : image_(w / "img_mod" / "lin", {.in = c.hidden(), .out = kVectorsOfSide * c.hidden()}),
      text_(w / "txt_mod" / "lin", {.in = c.hidden(), .out = kVectorsOfSide * c.hidden()}),
      reference_time_(c.reference_time) {}

void QwenImageModulator::add_to(ModulationsMade& made) const {
  if (reference_time_ == ReferenceTime::kOfStep) {
    made.add(image_);
    made.add(text_);
    return;
  }
  const auto of_step = [](const Tensor& vectors_SE) { return vectors_SE.chunk(2, -1)[0]; };
  made.add([&](const Tensor& vectors_SE) { return image_(of_step(vectors_SE)); });
  made.add([&](const Tensor& vectors_SE) {
    const auto of_zero = vectors_SE.chunk(2, -1)[1].narrow(0, 0, 1);  // the same in all steps
    return image_(of_zero).expand({vectors_SE.size(0), -1});
  });
  made.add([&](const Tensor& vectors_SE) { return text_(of_step(vectors_SE)); });
}

QwenImageModulators::QwenImageModulators(const Weights& w, BlockRun run, const QwenImageConfig& c)
    : blocks_(w.once() / "double_blocks", run, c),
      hidden_(c.hidden()),
      num_vectors_((c.reference_time == ReferenceTime::kZero ? 3 : 2) * kVectorsOfSide) {}

void QwenImageModulators::add_to(ModulationsMade& made) const {
  blocks_.for_each([&](std::int64_t, const QwenImageModulator& layers) { layers.add_to(made); });
}

JointModulations QwenImageModulators::next(Modulations& step, std::int64_t num_noise) const {
  const auto mods = split_modulations(step.take(width_of_block()), num_vectors_ / 3);
  JointModulations all{.image = {mods[0], mods[1]}, .text = {mods[mods.size() - 2], mods.back()}};
  if (mods.size() == 6) all.references = ReferenceModulations{num_noise, {mods[2], mods[3]}};
  return all;
}

}  // namespace braid
