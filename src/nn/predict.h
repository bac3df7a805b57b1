// What a denoiser is asked, and the shape of every denoiser. Layouts wrap `Predict` and see an
// input through visit_tensors() alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/ops.h"

namespace braid {

// Sees a denoiser's tokens as they go by, [B L C] after the part of the model that `where` names:
// for proofs and for debugging.
using Watch = std::function<void(const std::string& where, const Tensor& tokens_BLC)>;

// One run of tokens: text, noisy latents, a reference picture. L tokens, A axes of a position.
struct Tokens {
  Tensor x_BLC;
  Tensor ids_LA;         // positions, the same for all pictures of the batch
  Tensor is_pad_L = {};  // bool; which tokens only fill up the run; undefined: none
};

// What one ControlNet looks at beside the noise.
struct ControlInput {
  int net = 0;                 // which of them
  Tensor x_BNC;                // the control picture, a row for each of the noise's tokens
  Tensor picture_13HW = {};    // in its place for nets that see pixels; of all pictures and tokens
  Tokens text;                 // of the prompt; a pad stands in the place of the mode's token
  Tensor pooled_BC = {};       // of the prompt
  Tensor guidance_B = {};      // float32; for nets that were distilled with guidance
  Tensor mode = {};            // int64 [1]; of nets that have several
  Tensor scale = {};           // float32, a number
  Tensor modulations_BM = {};  // of its blocks, in this step
};

// What ControlNets add to the noise's tokens behind blocks of either kind, [B N C] each: the first
// to those behind as many blocks as share them evenly, and so on.
struct BlockResiduals {
  std::vector<Tensor> doubles, singles;
};

// B pictures are denoised at once. Undefined tensors are those that a family has no use for.
struct DenoiserInput {
  Tokens noise;                         // noisy latents, packed: the velocity is of these
  Tokens text;                          // the embedded prompt
  std::vector<Tokens> references = {};  // pictures that the model looks at
  Tensor beside_BLC = {};  // more channels of the noise's tokens, that stay as they are
  Tensor pooled_BC = {};   // the prompt as one vector
  Tensor timestep_B = {};  // as the family's transformer takes it
  Tensor guidance_B = {};  // float32; for guidance-distilled models
  std::vector<ControlInput> controls = {};  // the same for all branches of a step
  BlockResiduals residuals = {};            // what ControlNets made of them
  Tensor modulations_BM = {};  // of the blocks that are here, in this step: nn/modulations.h
  Watch watch = {};
};

// Along which dim of a tensor the pictures follow each other, and along which the tokens of its
// run; kNone where all pictures or tokens have it in common.
struct Along {
  static constexpr std::int64_t kNone = -1;
  std::int64_t batch, tokens;
  const char* name;  // "image", "text", "reference": of a run of tokens, for messages
};

// visit(tensor, along) of every defined tensor of `in`, a DenoiserInput or a const one, in a fixed
// order. The names below are all members: an input with one more does not compile until it is
// enumerated here.
template <class Input, class Visit>
void visit_tensors(Input& in, const Visit& visit) {
  auto& [noise, text, references, beside, pooled, timestep, guidance, controls, residuals,
         modulations, watch] = in;
  (void)watch;
  const auto one = [&](auto& x, const Along& along) {
    if (x.defined()) visit(x, along);
  };
  const auto run = [&](auto& tokens, const char* name) {
    auto& [x, ids, is_pad] = tokens;
    one(x, {.batch = 0, .tokens = 1, .name = name});
    one(ids, {.batch = Along::kNone, .tokens = 0, .name = name});
    one(is_pad, {.batch = Along::kNone, .tokens = 0, .name = name});
  };
  run(noise, "image");
  run(text, "text");
  for (auto& reference : references) run(reference, "reference");
  one(beside, {.batch = 0, .tokens = 1, .name = "image"});
  one(pooled, {.batch = 0, .tokens = Along::kNone, .name = "pooled"});
  one(timestep, {.batch = 0, .tokens = Along::kNone, .name = "timestep"});
  one(guidance, {.batch = 0, .tokens = Along::kNone, .name = "guidance"});
  for (auto& control : controls) {
    one(control.x_BNC, {.batch = 0, .tokens = 1, .name = "image"});
    one(control.picture_13HW,
        {.batch = Along::kNone, .tokens = Along::kNone, .name = "control picture"});
    run(control.text, "text");
    one(control.pooled_BC, {.batch = 0, .tokens = Along::kNone, .name = "pooled"});
    one(control.guidance_B, {.batch = 0, .tokens = Along::kNone, .name = "guidance"});
    one(control.mode, {.batch = Along::kNone, .tokens = Along::kNone, .name = "mode"});
    one(control.scale, {.batch = Along::kNone, .tokens = Along::kNone, .name = "scale"});
    one(control.modulations_BM, {.batch = 0, .tokens = Along::kNone, .name = "modulations"});
  }
  for (auto* const kind : {&residuals.doubles, &residuals.singles})
    for (auto& residual : *kind) one(residual, {.batch = 0, .tokens = 1, .name = "image"});
  one(modulations, {.batch = 0, .tokens = Along::kNone, .name = "modulations"});
}

// -> velocity [B L C] of the noise, d(latents) / d(sigma)
using Predict = std::function<Tensor(const DenoiserInput&)>;

// One of several parts of a denoiser that follow each other. `state` [B S C] is what the part
// before made, undefined for the first part; the last makes the velocity.
using PredictPart = std::function<Tensor(const DenoiserInput&, const Tensor& state)>;

// -> what ControlNets make of an input and its controls.
using Follow = std::function<BlockResiduals(const DenoiserInput&)>;

}  // namespace braid
