// Errors of readers of JSON that use nlohmann's events directly.
#pragma once

#include <exception>
#include <string>

namespace braid {

// Throws InputError with what nlohmann's reader found in `source`, without its own name for that,
// "[json.exception.parse_error.101]".
[[noreturn]] void refuse_json(const std::string& source, const std::exception& found);

}  // namespace braid
