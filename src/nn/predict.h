// What a denoiser is asked, and the shape of every denoiser. Layouts wrap `Predict` and know only
// which dim of each tensor runs along the batch and which along tokens.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ops/ops.h"

namespace braid {

// Sees a denoiser's tokens as they go by, [B L C] after the part of the model that `where` names:
// for proofs and for debugging.
using Watch = std::function<void(const std::string& where, const Tensor& tokens_BLC)>;

// B batch, I image tokens, T text tokens, A axes of a position.
struct DenoiserInput {
  Tensor image_BIC;     // noisy latents, packed
  Tensor image_ids_IA;  // positions
  Tensor text_BTC;      // embedded prompt
  Tensor text_ids_TA;
  Tensor pooled_BC;                       // the prompt as one vector
  Tensor timestep_B;                      // sigma in the latents' dtype: 1 is noise, 0 the picture
  std::optional<Tensor> guidance_B = {};  // float32; for guidance-distilled models
  Watch watch = {};
};

// -> velocity [B I C], d(latents) / d(sigma)
using Predict = std::function<Tensor(const DenoiserInput&)>;

// One of several parts of a denoiser that follow each other. `state` [B S C] is what the part
// before made, undefined for the first part; the last makes the velocity.
using PredictPart = std::function<Tensor(const DenoiserInput&, const Tensor& state)>;

}  // namespace braid
