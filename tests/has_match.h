// A matcher of patterns. GoogleTest's own call regcomp, and where Oniguruma is linked it is
// Oniguruma's, which takes other flags: "+" is a plus there.
#pragma once

#include <gmock/gmock.h>

#include <regex>

namespace braid {

MATCHER_P(HasMatch, pattern, "") { return std::regex_search(arg, std::regex(pattern)); }

}  // namespace braid
