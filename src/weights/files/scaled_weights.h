// Weights in 4 or 8 bits and their scales in single files, whose spellings differ:
//
//   B.weight, B.weight_scale                 float8, one scale per row (Black Forest Labs) or
//                                            one for all (ComfyUI)
//   B.weight, B.scale_weight, scaled_fp8     float8, one for all (ComfyUI, older)
//   B.weight, B.weight_scale, B.weight_scale_2   float4, one per 16 neighbours, one for all
//   B.weight, B.weight_scale, B.comfy_quant  as JSON says (comfy_marks.h): float8, nvfp4, mxfp8,
//                                            int8, each rotated or not
//
// A scale's shape tells what it applies to, unless a mark does. Scales of activations are ignored:
// activations are multiplied as they are.
#pragma once

#include "weights/files/checkpoint.h"

namespace braid {

// Joins scales to their weights. Removes scales and their descriptions from `tensors` and returns
// them. Throws InputError if they do not fit, or if a weight's coding is unknown.
StoredByName join_scales(StoredByName& tensors);

}  // namespace braid
