// A model's transformer alone, one evaluation at a time: for callers with a sampling loop of their
// own.
#pragma once

#include <memory>
#include <vector>

#include "braid/braid.h"

namespace braid {

// Where a reference stands that is read amid the text.
struct ReferencePlace {
  int num_tokens = 0;
  int text_before = 0;  // tokens of text that precede it
};

// What diffusers' transformer of the family takes, in its units. B pictures, N tokens, T text
// tokens.
struct TransformerInput {
  Latents latents;      // [B, N, width]: packed, then what lies beside them (Fill, Control)
  Latents text;         // [B, T, width]
  Latents pooled = {};  // [B, width], for models with a pooled prompt
  std::vector<float> timesteps;              // B
  std::vector<float> target_timesteps = {};  // B, where the step leads; for flow maps
  std::vector<float> guidance = {};          // B, for models distilled for it
  // Positions [N, axes] and [T, axes], both or neither; empty: those of a picture of this size in
  // pixels.
  Latents latent_ids = {}, text_ids = {};
  int width = 0, height = 0;
  // The last so many of the N tokens are references, without a velocity; they have positions.
  int num_references = 0;
  // One for each reference, in their order, for models causal by blocks (Qwen-Image-2.1).
  std::vector<ReferencePlace> reference_places = {};
  // What the caller's ControlNets add to the latents' tokens after blocks of either kind, [B, N,
  // hidden] each, for models that take ControlNets. Of n blocks and r residuals, block i takes
  // residual i / ceil(n / r).
  std::vector<Latents> double_residuals = {}, single_residuals = {};
};

class BRAID_API Transformer {
 public:
  // Loads the transformer of `options.model` under its layout, and of the other parts only their
  // configuration: they may lack weights. Of the hooks, `warning` and `stop` count. Throws
  // InputError as Pipeline does.
  explicit Transformer(const PipelineOptions& options, const Hooks& hooks = {});
  Transformer(Transformer&&) noexcept;
  Transformer& operator=(Transformer&&) noexcept;
  ~Transformer();

  // The velocity [B, N - references, width]: from the picture to noise, whatever sign the model's
  // own output has. Ranks that are processes all get it; each has to be given the same input,
  // else it is an Error (residuals are not compared). Of the hooks, only `stop` counts. Throws
  // InputError naming a shape that does not fit.
  Latents velocity(const TransformerInput& evaluation, const Hooks& hooks = {}) const;

 private:
  class BRAID_INTERNAL State;
  std::unique_ptr<State> state_;
};

}  // namespace braid
