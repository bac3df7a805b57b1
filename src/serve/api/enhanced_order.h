// Orders whose prompts are rewritten by an enhancer before their jobs are made.
#pragma once

#include "serve/api/api.h"

namespace braid::serve {

// The field `enhance`. Throws ApiError if it is true and the server has no enhancer.
bool reads_enhance(Fields& fields, const ApiContext& context);

// The order with its prompt rewritten, complete, and with its original prompt. `order` has
// pictures, but no defaults yet. Waits for the enhancer. Throws ApiError: 400 for what it cannot be
// asked, 502 if it fails, 504 if it is late, 409 if `stop` was requested, or 503 if the server
// stops.
Order enhanced_order(const ApiContext& context, Order order, const std::stop_token& stop);

}  // namespace braid::serve
