// Which field of a request a sentence of the engine is about.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace braid::serve {

// The field by its name in /v1/jobs; empty for a sentence that is about none, or about several.
std::string field_of_complaint(std::string_view sentence);

// The name under which the client sent the field, as each API has its own: of `init` it may be
// `image`, of `size` `width`. Empty if the client sent none of them.
std::string name_as_sent(const std::string& field, const std::set<std::string>& sent);

}  // namespace braid::serve
