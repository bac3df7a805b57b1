// Numbers with three significant digits, as people read them.
#pragma once

#include <string>

namespace braid {

std::string three_digits(double value);    // "0.052", "5.23", "52.3", "523"
std::string readable_bytes(double bytes);  // "17.3 MB", by powers of 1000

}  // namespace braid
