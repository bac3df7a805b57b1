// The sampler and the noise levels, by our names (ComfyUI's) and by those of AUTOMATIC1111.
#pragma once

#include "braid/request.h"
#include "serve/body/fields.h"

namespace braid::serve {

// `sampler` (or `sampler_name`), `schedule` (or `scheduler`), `sigmas`, `base_sigmas` and `shift`.
// Throws ApiError naming the field and the names that it takes, or two fields that contradict.
void read_sampling(Fields& fields, Sampling& sampling);

// The web UI's `sampler_name`, with a schedule behind it as in "DPM++ 2M Karras", and `scheduler`.
// Its clients name those of other engines too: a warning says which is used instead, also of a
// `sampler_index` that says something else.
void read_web_ui_sampling(Fields& fields, Sampling& sampling);

}  // namespace braid::serve
