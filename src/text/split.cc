#include "text/split.h"

#include <algorithm>

#include "base/utf8.h"

namespace braid::text {
namespace {

// Whether `next` continues the piece that ends with `previous`.
bool joins(const Span& previous, const Span& next, Delimiter delimiter) {
  switch (delimiter) {
    case Delimiter::contiguous:
      return previous.is_match == next.is_match;
    case Delimiter::merged_with_previous:
      return next.is_match && !previous.is_match;
    case Delimiter::merged_with_next:
      return previous.is_match && !next.is_match;
    case Delimiter::removed:
    case Delimiter::isolated:
      return false;
  }
  return false;
}

void append(const TextPiece& piece, std::size_t begin, std::size_t end,
            std::vector<TextPiece>& out) {
  if (begin == end) return;
  out.push_back({piece.text.substr(begin, end - begin), piece.at_start && begin == 0, {}});
}

}  // namespace

std::vector<Span> spans_of(std::string_view text, const std::vector<Match>& matches) {
  std::vector<Span> out;
  std::size_t at = 0;
  for (const auto& match : matches) {
    if (at < match.begin) out.push_back({at, match.begin, false});
    out.push_back({match.begin, match.end, true});
    at = match.end;
  }
  if (at < text.size()) out.push_back({at, text.size(), false});
  return out;
}

std::vector<Span> spans_of(std::string_view text, const std::function<bool(char32_t)>& is_match) {
  std::vector<Match> matches;
  for (std::size_t at = 0; at < text.size();) {
    const auto c = decode_utf8(text, at);
    if (is_match(c.code)) matches.push_back({at, at + c.size});
    at += c.size;
  }
  return spans_of(text, matches);
}

std::vector<Span> inverted(std::vector<Span> spans) {
  for (auto& span : spans) span.is_match = !span.is_match;
  return spans;
}

void split(const TextPiece& piece, const std::vector<Span>& spans, Delimiter delimiter,
           std::vector<TextPiece>& out) {
  for (std::size_t i = 0; i < spans.size();) {
    std::size_t last = i;
    while (last + 1 < spans.size() && joins(spans[last], spans[last + 1], delimiter)) ++last;
    if (delimiter != Delimiter::removed || !spans[i].is_match)
      append(piece, spans[i].begin, spans[last].end, out);
    i = last + 1;
  }
}

}  // namespace braid::text
