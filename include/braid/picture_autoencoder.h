// A model's autoencoder alone, on one device: for callers with a pipeline of their own.
#pragma once

#include <memory>

#include "braid/braid.h"

namespace braid {

// B pictures of C channels, 3 or with alpha 4; Z channels of latents, which are diffusers'
// autoencoder's own: neither scaled for a transformer nor packed. Of `tiling`, kAuto is kOff.
class BRAID_API PictureAutoencoder {
 public:
  // Loads both halves of the autoencoder of `options.model` onto the first of its devices, and of
  // the other parts only their configuration. Of the options, those of layout, memory and adapters
  // do not count; of the hooks, `warning` and `stop` do. Throws InputError as Pipeline does.
  explicit PictureAutoencoder(const PipelineOptions& options, const Hooks& hooks = {});
  PictureAutoencoder(PictureAutoencoder&&) noexcept;
  PictureAutoencoder& operator=(PictureAutoencoder&&) noexcept;
  ~PictureAutoencoder();

  // Latents [B Z h w] -> pictures [B C H W], about -1 .. 1. Of the hooks, only `stop` counts.
  // Throws InputError naming a shape that does not fit.
  Latents decode(const Latents& latents, VaeTiling tiling = VaeTiling::kOff,
                 const Hooks& hooks = {}) const;

  // Pictures [B C H W], -1 .. 1, whole latents per side -> moments [B 2Z h w]: means, then
  // log-variances within -30 .. 20. As decode() otherwise.
  Latents encode(const Latents& pictures, VaeTiling tiling = VaeTiling::kOff,
                 const Hooks& hooks = {}) const;

 private:
  class BRAID_INTERNAL State;
  std::unique_ptr<State> state_;
};

}  // namespace braid
