// What the endpoints of AUTOMATIC1111's web UI share.
#pragma once

#include "serve/api/api.h"

namespace braid::serve {

// The only sampler. Clients may name any: those of other engines mean nothing here.
constexpr const char* kWebUiSampler = "Euler";

const Backend& chosen_in_web_ui(const ApiContext& context);

}  // namespace braid::serve
