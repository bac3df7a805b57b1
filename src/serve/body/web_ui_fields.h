// Fields of AUTOMATIC1111's web UI that have no counterpart here. Its clients send most of them
// always, at values that turn them off.
#pragma once

#include "image/web_ui_terms.h"
#include "serve/backend.h"
#include "serve/body/fields.h"

namespace braid::serve {

// Throws ApiError naming a field that is turned on and asks for another picture: `enable_hr`,
// `refiner_checkpoint`, scripts and the like.
void refuse_missing_features(const Fields& fields);

// Warns of each of `override_settings` that is not followed, and of fields that were not read, but
// for values that clients send unasked. `fields` warns of unknown ones; all others were read.
void warn_of_unused_choices(Fields& fields);

// `cfg_scale`, at 1 off, `distilled_cfg_scale` and `negative_prompt`: true guidance, the guidance
// that a distilled model takes as a number, and what true guidance leads away from. A model that
// was distilled to do without true guidance takes it only with a negative prompt. Warns of what is
// not used, and of scales below 1, which are taken as 1. Throws ApiError for those below 0.
void read_web_ui_guidance(Fields& fields, const Backend& backend, Request& request);

// Pydantic's words for true and false in any case, as "True", "1" and "off"; nothing for others.
std::optional<bool> truth_of(std::string_view text);

// A boolean that may be 0 or 1, or such a word. Throws ApiError for another value.
bool is_on(Fields& fields, const char* name, bool otherwise = false);

// What a complete request takes, in these terms.
WebUiScales web_ui_scales(const Request& request, const Backend& backend);

}  // namespace braid::serve
