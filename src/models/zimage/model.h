// The Z-Image transformer (Tongyi Lab, 2025; diffusers' ZImageTransformer2DModel), written for one
// device.
#pragma once

#include "models/zimage/ends.h"
#include "nn/block_list.h"
#include "nn/rope.h"

namespace braid {

// Image and text tokens are refined apart, then attend to each other in all other blocks. Both come
// in multiples of 32, padded by tokens that are attended too: Tokens::is_pad_L says which; what
// they hold does not matter. Positions are (1 + i, 0, 0) of text tokens, pads as well, and (T + 1,
// row, column) of image tokens, (0, 0, 0) of their pads.
class ZImage {
 public:
  // Uses every tensor of `w` exactly once; throws InputError naming the first that does not fit.
  // With `run`, of all blocks with the image's refiners first and the text's second, only what
  // belongs to its blocks is read and the rest is checked.
  ZImage(const ZImageConfig& config, const Weights& w, Attend attend = ops::attention,
         std::optional<BlockRange> run = {});

  // -> [B I C], of a transformer that has all blocks, pads included: the negated velocity. The
  // noise is rounded to the dtype of the weights; the timestep is 1 - sigma in float32.
  Tensor operator()(const DenoiserInput& in) const;
  // From the packed state that the run before made to the one after this run, with `modulations_BM`
  // of this run. The first run begins with the input, and the last makes the output.
  Tensor advance(const DenoiserInput& in, const Tensor& state) const;

  // The embedded timesteps [S E], of the first run; and of these, what modulates this one.
  Tensor condition(const DenoiserInput& in) const { return inputs_->condition(in); }
  std::vector<Tensor> modulations(const std::vector<Tensor>& conditions_SE) const;
  std::int64_t num_modulations() const;

  const ZImageConfig& config() const { return config_; }

 private:
  ZImageState begin(const DenoiserInput& in, const Tensor& state) const;
  void refine(ZImageState& x, Modulations& mods, const DenoiserInput& in, const Rope& rope) const;
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
