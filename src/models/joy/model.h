// The JoyAI-Image-Edit transformer (JD, 2025; diffusers' JoyImageEditTransformer3DModel and
// JoyImageEditPlusTransformer3DModel), written for one device.
#pragma once

#include "models/joy/ends.h"
#include "nn/block_list.h"
#include "nn/rope.h"

namespace braid {

class Joy {
 public:
  // Uses every tensor of `w` exactly once; throws InputError naming the first that does not fit.
  // With `run`, only the tensors of its blocks are read; the others are checked.
  Joy(const JoyConfig& config, const Weights& w, Attend attend = ops::attention,
      std::optional<BlockRange> run = {});

  // Advances the packed state of the previous run by this run's blocks. The first run starts from
  // the input; the last returns the velocity. The velocity is [B N C], of the noise. A token is 2 x
  // 2 latents, channels slowest. Positions have 3 axes: picture index, row, column.
  Tensor advance(const DenoiserInput& in, const Tensor& state) const;

  const JoyConfig& config() const { return config_; }

 private:
  JoyState begin(const DenoiserInput& in, const Tensor& state) const;

  JoyConfig config_;
  BlockRun run_;
  Attend attend_;
  std::optional<JoyInputs> inputs_;
  BlockList<JoyBlock> blocks_;
  std::optional<JoyOutput> output_;
};

}  // namespace braid
