// Where the reference's Unicode differs from the system's libraries. Sorted, without overlaps.
// Written by tools/parity/dump_unicode.py, which documents how each table was found.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace braid::unicode {

struct Range {
  char32_t first, last;
};

struct Shift {
  char32_t first, last;
  std::int32_t by;
};

struct Category {
  char32_t first, last;
  char name[3];
};

// Characters that the reference's normalisation (Unicode 9) leaves unchanged and separate: no
// combining class, decomposition, composition or mark.
std::span<const Range> inert();

// Lower-casing of Unicode 14 to 17.
std::span<const Shift> lower_case_shifts();

// General categories of characters assigned in Unicode 15 and 16, which the reference's regular
// expressions know.
std::span<const Category> later_categories();

// Numbers of Unicode 15 to 17.
std::span<const Range> later_numbers();

// Today's punctuation that Unicode 9 did not count as such.
std::span<const Range> not_punctuation();

// Characters that extend a grapheme cluster since Unicode 15.
std::span<const Range> later_extenders();

// Whether `c` lies in one of the sorted ranges.
inline bool contains(std::span<const Range> ranges, char32_t c) {
  const auto it = std::ranges::lower_bound(ranges, c, {}, &Range::last);
  return it != ranges.end() && it->first <= c;
}

}  // namespace braid::unicode
