// How the pictures that a request brings along are taken: the fields beside them.
#pragma once

#include "braid/braid.h"
#include "serve/fields.h"
#include "serve/picture_request.h"

namespace braid::serve {

// `mask_blur`, `padding_crop`, `reference_scale`, `reference_cache`, `control_scale`,
// `control_from`, `control_to`, `control_mode`: those with several pictures once for all of them or
// once for each, in a list. The pictures are there already. Throws ApiError naming the field.
void read_picture_options(Fields& fields, PicturesIn& in);

// What AUTOMATIC1111's img2img has beside: `resize_mode`, and of a mask `inpainting_mask_invert`,
// `mask_blur`, `inpaint_full_res` and its `_padding`. Refused is what has no equal here:
// `resize_mode` 3 and an `inpainting_fill` other than 1. Sizes are the request's.
void apply_sdapi_options(Fields& fields, Request& request, const RequestBounds& bounds);

}  // namespace braid::serve
