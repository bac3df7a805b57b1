// Cutting a piece where a pattern matches.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "text/piece.h"
#include "text/unicode/regex.h"

namespace braid::text {

// What becomes of the delimiters that matched.
enum class Delimiter { removed, isolated, merged_with_previous, merged_with_next, contiguous };

// A stretch of the text; together they cover it in order.
struct Span {
  std::size_t begin, end;
  bool is_match;
};

// The stretches between, and the matches.
std::vector<Span> spans_of(std::string_view text, const std::vector<Match>& matches);

// Every character for which `is_match` holds is a match of its own.
std::vector<Span> spans_of(std::string_view text, const std::function<bool(char32_t)>& is_match);

// Matches become gaps, gaps become matches.
std::vector<Span> inverted(std::vector<Span> spans);

// Appends the pieces that are not empty.
void split(const TextPiece& piece, const std::vector<Span>& spans, Delimiter delimiter,
           std::vector<TextPiece>& out);

}  // namespace braid::text
