// The pictures that clients bring along, in the words of each API.
#pragma once

#include "image/input_file.h"
#include "serve/picture_request.h"

namespace braid::serve {

// What a request has of pictures, and what its picture's file says of them: a client's names where
// it tells any, else those of their roles.
struct BroughtPictures {
  PicturesIn pictures;
  std::vector<InputFile> files;
};

// Each throws ApiError naming the field: for what is no picture, and for more pixels in all than
// bounds.max_input_pixels, which is found from their heads.

// `init`, `mask`, `reference`, `control`, each a file or base64, `strength`, and what
// read_picture_options() reads.
BroughtPictures read_own_pictures(Fields& fields, const RequestBounds& bounds);

// OpenAI's `image` and `mask`, and the same. What they are to the model: what it looks at, if it
// looks at any and there is neither a mask nor a strength; else the first is what it starts from. A
// mask's holes are drawn anew, or its white where it has none.
BroughtPictures read_edited_pictures(Fields& fields, const ModelInfo& info,
                                     const RequestBounds& bounds);

// AUTOMATIC1111's `init_images`, `mask` and `denoising_strength`; what else it has of them is
// apply_sdapi_options()'s.
BroughtPictures read_sdapi_pictures(Fields& fields, const ModelInfo& info,
                                    const RequestBounds& bounds);

}  // namespace braid::serve
