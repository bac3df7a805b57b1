// Which field of a request an error of the engine is about.
#pragma once

#include <set>
#include <string>

#include "base/error.h"

namespace braid::serve {

// The field by its name in /v1/jobs; empty for an error that is about none.
std::string field_of(const InputError& error);

// The name under which the client sent the field, as each API has its own: of `init` it may be
// `image`, of `size` `width`. Empty if the client sent none of them.
std::string name_as_sent(const std::string& field, const std::set<std::string>& sent);

}  // namespace braid::serve
