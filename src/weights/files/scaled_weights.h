// Weights in 4 or 8 bits and their scales in single files, whose spellings differ:
//
//   B.weight, B.weight_scale                 float8, one scale per row (Black Forest Labs) or
//                                            one for all (ComfyUI)
//   B.weight, B.scale_weight, scaled_fp8     float8, one for all (ComfyUI, older)
//   B.weight, B.weight_scale, B.weight_scale_2   float4, one per 16 neighbours, one for all
//   B.weight, B.weight_scale, B.comfy_quant  as JSON says (comfy_marks.h): float8, nvfp4, mxfp8,
//                                            int8, each rotated or not
//
// Float8 tensors of other names may have one, too: B.bias, B.bias_scale. A scale's shape tells what
// it applies to, unless a mark does. Scales of activations are ignored: activations are multiplied
// as they are.
#pragma once

#include "weights/files/checkpoint.h"

namespace braid {

// Joins scales to their weights. Removes scales and their descriptions from `tensors` and returns
// them. Throws InputError if they do not fit, or if a weight's coding is unknown.
StoredByName join_scales(StoredByName& tensors);

// The same for int8 codes with a tensor of scales named like them, NAME_scale, which join_scales()
// leaves two tensors: models multiply by such codes. Drops the scales.
StoredByName with_int8_joined(StoredByName tensors);

// A scale in the shape that multiplies a weight's numbers: [], [N 1] or [N groups]; [N/128 C/128]
// for squares. Throws InputError if it does not fit, or if its groups cannot be told.
std::shared_ptr<const StoredTensor> scale_of(StoredTensor scale, const StoredTensor& weight);

// How many neighbours share each of a row's scales; the last ones may be fewer. 0 if that is not
// certain: it is for sizes that codings have, powers of two, and if no other size is possible.
std::int64_t neighbours_per_scale(std::int64_t columns, std::int64_t scales);

}  // namespace braid
