// The time as HTTP writes it.
#pragma once

#include <chrono>
#include <string>

namespace braid::serve {

// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, section 5.6.7).
std::string http_date(std::chrono::system_clock::time_point time);

}  // namespace braid::serve
