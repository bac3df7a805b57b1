// The fields that say how a request's pictures are used.
#pragma once

#include <functional>
#include <memory>

#include "braid/braid.h"
#include "serve/body/fields.h"
#include "serve/body/picture_request.h"

namespace braid::serve {

// `mask_blur`, `padding_crop`, `reference_scale`, `reference_cache`, `resolution`,
// `control_scale`, `control_from`, `control_to`, `control_mode`; with several pictures either one
// value for all or a list with one each. `in` already holds the pictures; without one to follow,
// the fields of controls are about one to fill in, if the model does that. Throws ApiError naming
// the field.
void read_picture_options(Fields& fields, const ModelInfo& info, PicturesIn& in);

// The other picture fields of AUTOMATIC1111's img2img: `resize_mode`, and for a mask
// `inpainting_mask_invert`, `mask_blur`, `inpaint_full_res` and its `_padding`. A mask first gets
// the initial picture's size. Refuses what has no equivalent here: `resize_mode` 3 and an
// `inpainting_fill` above 1. `in` already holds the pictures; the result changes them once they are
// decoded, to the size of `request`. Where it fills the initial picture, `unfilled` becomes that
// picture without.
std::function<void(Request&)> read_sdapi_options(Fields& fields, const Request& request,
                                                 PicturesIn& in, const RequestBounds& bounds,
                                                 std::shared_ptr<Pixels> unfilled);

}  // namespace braid::serve
