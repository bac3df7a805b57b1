// The Z-Image transformer (Tongyi Lab, 2025; diffusers' ZImageTransformer2DModel), written for one
// device.
#pragma once

#include "models/zimage/ends.h"
#include "nn/block_list.h"
#include "nn/rope.h"

namespace braid {

// Image and text tokens are refined separately, then attend to each other in all other blocks. Both
// come in multiples of 32, with pads marked by Tokens::is_pad_L. Pads are attended to; what they
// hold does not matter. Positions: (1 + i, 0, 0) for text tokens and their pads, (T + 1, row,
// column) for image tokens, (0, 0, 0) for image pads.
class ZImage {
 public:
  // Uses every tensor of `w` exactly once; throws InputError naming the first that does not fit.
  // `run` counts the image refiners, then the text refiners, then the layers. With it, only the
  // tensors of its blocks are read; the others are checked.
  ZImage(const ZImageConfig& config, const Weights& w, Attend attend = ops::attention,
         std::optional<BlockRange> run = {});

  // Advances the packed state of the previous run by this run's blocks, with this run's
  // `modulations_BM`. The first run starts from the input; the last returns the output. Text that
  // the input does not bring refined is refined here. The result is [B I C], the negated velocity,
  // pads included. The noise is rounded to the weights' dtype; the timestep is 1 - sigma in
  // float32.
  Tensor advance(const DenoiserInput& in, const Tensor& state) const;

  // The text [B T C] after this run's blocks that see only it, the same in all steps; from the
  // previous run's, undefined for the first.
  Tensor refine(const DenoiserInput& in, const Tensor& text_BTC) const;

  // condition(): the embedded timesteps [S E], on the first run only. modulations(): this run's
  // modulations for several of them.
  Tensor condition(const DenoiserInput& in) const { return inputs_->condition(in); }
  std::vector<Tensor> modulations(
      const std::vector<Tensor>& conditions_SE,
      const std::function<void()>& before_layer = [] {}) const;
  std::int64_t num_modulations() const;

  const ZImageConfig& config() const { return config_; }

 private:
  ZImageState begin(const DenoiserInput& in, const Tensor& state) const;
  Tensor embedded_text(const DenoiserInput& in) const;
  Tensor refined_text(Tensor text_BTC, const DenoiserInput& in, const Rope& rope) const;
  void refine_image(ZImageState& x, Modulations& mods, const DenoiserInput& in,
                    const Rope& rope) const;
  void run_layers(ZImageState& x, Modulations& mods, const DenoiserInput& in,
                  const Rope& rope) const;

  ZImageConfig config_;
  BlockRun run_;
  Attend attend_;
  std::optional<ZImageInputs> inputs_;
  BlockList<ZImageModulator> refiner_modulators_, layer_modulators_;
  BlockList<ZImageBlock> image_refiners_, text_refiners_, layers_;
  std::optional<ZImageOutput> output_;
};

}  // namespace braid
