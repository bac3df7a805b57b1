// Weights in 4 or 8 bits and the scales that single files have beside them, whose spellings differ:
//
//   B.weight, B.weight_scale                 float8, a scale a row (Black Forest Labs) or one for
//                                            all (ComfyUI)
//   B.weight, B.scale_weight, scaled_fp8     float8, one for all (ComfyUI, older)
//   B.weight, B.weight_scale, B.weight_scale_2   float4, a scale for 16 neighbours, one for all
//   B.weight, B.weight_scale, B.comfy_quant  as JSON says (comfy_marks.h): float8, nvfp4, mxfp8,
//                                            int8, each rotated or not
//
// What a scale belongs to is told by its shape, unless a mark says it. Scales of activations are
// left out: activations are multiplied as they are.
#pragma once

#include <map>
#include <string>

#include "weights/files/checkpoint.h"

namespace braid {

// Joins scales to their weights; they and what describes them are no tensors of their own any
// longer. Throws InputError where they do not fit, or where weights are coded in a way that is not
// known.
void join_scales(std::map<std::string, StoredTensor>& tensors);

}  // namespace braid
