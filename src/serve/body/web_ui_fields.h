// Fields of AUTOMATIC1111's web UI that have no counterpart here. Its clients send most of them
// always, at values that turn them off.
#pragma once

#include "serve/backend.h"
#include "serve/body/fields.h"

namespace braid::serve {

// Throws ApiError naming a field that is turned on and asks for another picture: `enable_hr`,
// `refiner_checkpoint`, scripts and the like.
void refuse_missing_features(const Fields& fields);

// One sentence for each choice that is not followed, although its clients always make one: the
// sampler, the negative prompt, `override_settings`.
std::vector<std::string> unused_choices(const Fields& fields, const Backend& backend);

}  // namespace braid::serve
