// Splits a piece where a pattern matches.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "text/piece.h"
#include "text/unicode/regex.h"

namespace braid::text {

// What happens to the matched delimiters.
enum class Delimiter { removed, isolated, merged_with_previous, merged_with_next, contiguous };

// A range of the text; together they cover it in order.
struct Span {
  std::size_t begin, end;
  bool is_match;
};

// The matches and the ranges between them.
std::vector<Span> spans_of(std::string_view text, const std::vector<Match>& matches);

// Every character for which `is_match` holds is its own match.
std::vector<Span> spans_of(std::string_view text, const std::function<bool(char32_t)>& is_match);

// Matches become gaps, gaps become matches.
std::vector<Span> inverted(std::vector<Span> spans);

// Appends the non-empty pieces.
void split(const TextPiece& piece, const std::vector<Span>& spans, Delimiter delimiter,
           std::vector<TextPiece>& out);

}  // namespace braid::text
