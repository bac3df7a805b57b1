// Numbers and texts in readable form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/readable_bytes.h"

namespace braid {

std::string decimal(double value);               // "3.5", "4", the fewest digits that round-trip
std::string readable_count(std::int64_t count);  // "6,352,064"
std::string readable_seconds(double seconds);    // "0.052 s", "12.3 s"
std::string readable_wait(double seconds);       // "0:07", "1:02:33"
std::string plural(std::int64_t count, const std::string& noun);  // "1 step", "2 steps"

// `text` at the start of a column; at the end of one, with at least one blank before it.
std::string left_aligned(std::string text, std::size_t column);
std::string right_aligned(const std::string& text, std::size_t column);

// `text` on one line: control characters become blanks, bytes that are not UTF-8 become "?", and
// text over `max_bytes` is cut and ends in "...".
std::string one_line(std::string_view text, std::size_t max_bytes = 2000);

// `text` in single quotes, shortened for an error message.
std::string in_quotes(std::string_view text);

}  // namespace braid
