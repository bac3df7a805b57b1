// What the endpoints of AUTOMATIC1111's web UI share.
#pragma once

#include "serve/api/api.h"

namespace braid::serve {

const Backend& chosen_in_web_ui(const ApiContext& context);

}  // namespace braid::serve
