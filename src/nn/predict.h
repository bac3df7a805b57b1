// The input and the signature of every denoiser. Layouts wrap `Predict` and see an input only
// through visit_tensors().
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/ops.h"

namespace braid {

// Observes a denoiser's tokens [B L C] after the part of the model named `where`; for proofs and
// debugging.
using Watch = std::function<void(const std::string& where, const Tensor& tokens_BLC)>;

// One run of tokens: text, noisy latents, a reference picture. L tokens, A axes per position.
struct Tokens {
  Tensor x_BLC;
  Tensor ids_LA;         // positions, shared by all pictures of the batch
  Tensor is_pad_L = {};  // bool; true for tokens that only pad the run; undefined: none
  // int32 [L 2], for models causal by blocks: a token's place among all tokens, and the last place
  // that it sees. Its own for text, the last of its picture for a picture's.
  Tensor span_L2 = {};
  // The rotary tables of the positions, made once per picture; undefined: denoisers make their own.
  Rope rope = {};
};

// A ControlNet's input besides the noise.
struct ControlInput {
  int net = 0;                 // index of the net
  Tensor x_BNC;                // the control picture, one row per noise token
  Tokens text;                 // the prompt; a pad holds the place of the mode's token
  Tensor pooled_BC = {};       // pooled prompt
  Tensor guidance_B = {};      // float32; for guidance-distilled nets
  Tensor mode = {};            // int64 [1]; for nets with several modes
  Tensor scale = {};           // float32 scalar
  Tensor modulations_BM = {};  // for its blocks, in this step
};

// Residuals [B N C] that ControlNets add to the noise tokens after blocks of either kind.
// Consecutive blocks share one: of n blocks and r residuals, block i takes residual i / ceil(n /
// r).
struct BlockResiduals {
  std::vector<Tensor> doubles, singles;
};

// Identifies one evaluation of those that pictures take. Caches, the keys of references that
// are kept, models with several denoisers and flow maps go by it.
struct StepInfo {
  int number = 0;      // of all, from 0 on; a step of some samplers takes two
  float timestep = 0;  // on the schedule's scale, where 1000 is noise alone
  float next = 0;      // that of the next lower level, 0 after the last
  int branch = 0;      // of guidance; 0 is the prompt's
  int picture = 0;     // in the rank's batch: of the first picture here
};

// A batch of B pictures denoised together. Tensors a family has no use for stay undefined.
struct DenoiserInput {
  Tokens noise;                         // noisy latents, packed; the velocity has their shape
  Tokens text;                          // the embedded prompt
  std::vector<Tokens> references = {};  // pictures the model looks at
  Tensor extra_BLC = {};          // extra channels of the noise tokens, constant over the steps
  Tensor pooled_BC = {};          // pooled prompt
  Tensor timestep_B = {};         // in the units of the family's transformer
  Tensor target_timestep_B = {};  // where a step leads, in the same units; for flow maps
  Tensor guidance_B = {};         // float32; for guidance-distilled models
  std::vector<ControlInput> controls = {};  // shared by all branches of a step
  BlockResiduals residuals = {};            // computed by ControlNets from `controls`
  Tensor modulations_BM = {};               // for the blocks here, in this step: nn/modulations.h
  Tensor refined_BTC = {};  // the text after blocks that see only it: DenoiserPart::refine
  Watch watch = {};
  StepInfo step = {};
};

// The dims of a tensor that run over the batch and over the tokens of its run; kNone where all
// pictures or tokens share it.
struct DimRoles {
  static constexpr std::int64_t kNone = -1;
  std::int64_t batch, tokens;
  const char* name;  // "image", "text", "reference": the run of tokens, for messages
};
constexpr const char* kResidual = "residual";  // of the noise, or also of all references behind it

// Calls visit(tensor, dims) for every defined tensor of `in`, a DenoiserInput or a const one, in a
// fixed order. The binding below names all members: a new member does not compile until it is
// enumerated here.
template <class Input, class Visit>
void visit_tensors(Input& in, const Visit& visit) {
  auto& [noise, text, references, extra, pooled, timestep, target, guidance, controls, residuals,
         modulations, refined, watch, step] = in;
  (void)watch;
  (void)step;
  const auto one = [&](auto& x, const DimRoles& dims) {
    if (x.defined()) visit(x, dims);
  };
  const auto run = [&](auto& tokens, const char* name) {
    auto& [x, ids, is_pad, span, rope] = tokens;
    one(x, {.batch = 0, .tokens = 1, .name = name});
    one(ids, {.batch = DimRoles::kNone, .tokens = 0, .name = name});
    one(is_pad, {.batch = DimRoles::kNone, .tokens = 0, .name = name});
    one(span, {.batch = DimRoles::kNone, .tokens = 0, .name = name});
    one(rope.cos, {.batch = DimRoles::kNone, .tokens = 0, .name = name});
    one(rope.sin, {.batch = DimRoles::kNone, .tokens = 0, .name = name});
  };
  run(noise, "image");
  run(text, "text");
  for (auto& reference : references) run(reference, "reference");
  one(extra, {.batch = 0, .tokens = 1, .name = "image"});
  one(pooled, {.batch = 0, .tokens = DimRoles::kNone, .name = "pooled"});
  one(timestep, {.batch = 0, .tokens = DimRoles::kNone, .name = "timestep"});
  one(target, {.batch = 0, .tokens = DimRoles::kNone, .name = "target"});
  one(guidance, {.batch = 0, .tokens = DimRoles::kNone, .name = "guidance"});
  for (auto& control : controls) {
    one(control.x_BNC, {.batch = 0, .tokens = 1, .name = "image"});
    run(control.text, "text");
    one(control.pooled_BC, {.batch = 0, .tokens = DimRoles::kNone, .name = "pooled"});
    one(control.guidance_B, {.batch = 0, .tokens = DimRoles::kNone, .name = "guidance"});
    one(control.mode, {.batch = DimRoles::kNone, .tokens = DimRoles::kNone, .name = "mode"});
    one(control.scale, {.batch = DimRoles::kNone, .tokens = DimRoles::kNone, .name = "scale"});
    one(control.modulations_BM, {.batch = 0, .tokens = DimRoles::kNone, .name = "modulations"});
  }
  for (auto* const kind : {&residuals.doubles, &residuals.singles})
    for (auto& residual : *kind) one(residual, {.batch = 0, .tokens = 1, .name = kResidual});
  one(modulations, {.batch = 0, .tokens = DimRoles::kNone, .name = "modulations"});
  one(refined, {.batch = 0, .tokens = 1, .name = "text"});
}

// -> velocity [B L C] of the noise, d(latents) / d(sigma)
using Predict = std::function<Tensor(const DenoiserInput&)>;

// One of several consecutive parts of a denoiser. `state` [B S C] is the previous part's result,
// undefined for the first; the last part returns the velocity.
using PredictPart = std::function<Tensor(const DenoiserInput&, const Tensor& state)>;

// -> the ControlNets' residuals for an input and its controls.
using Follow = std::function<BlockResiduals(const DenoiserInput&)>;

}  // namespace braid
