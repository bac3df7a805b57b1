// Text on its way to tokens: a list of pieces, some of which already are tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace braid::text {

struct TextPiece {
  std::string text;
  // Metaspace's "first" needs this. The reference keeps an offset per character: if the first one
  // decomposes and is then split (1/2 written as one character), all its parts count as first.
  bool at_start = false;                   // starts with the first character of the user's text
  std::optional<std::int64_t> token = {};  // an added token: final
};

// Changes a piece's text: Unicode forms, lower case, replacements.
using Normalizer = std::function<void(TextPiece&)>;

// Appends the pieces that a piece splits into. May also change the text (byte-level alphabets,
// U+2581).
using PreTokenizer = std::function<void(const TextPiece&, std::vector<TextPiece>&)>;

}  // namespace braid::text
