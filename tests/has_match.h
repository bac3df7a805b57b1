// A regular-expression matcher. GoogleTest's own calls regcomp, which is Oniguruma's where that is
// linked and takes other flags: "+" is a literal plus there.
#pragma once

#include <gmock/gmock.h>

#include <regex>

namespace braid {

MATCHER_P(HasMatch, pattern, "") { return std::regex_search(arg, std::regex(pattern)); }

}  // namespace braid
