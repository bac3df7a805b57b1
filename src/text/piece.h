// What text is while it becomes tokens: a list of pieces, some of which already are tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace braid::text {

struct TextPiece {
  std::string text;
  // For Metaspace's "first". The reference keeps an offset for each character: where the first one
  // decomposes and is then cut (1/2 written as one character), all its parts are first there.
  bool at_start = false;  // its first character is the first one of the user's text
  std::optional<std::int64_t> token = {};  // of an added token: final
};

// Changes a piece's text: Unicode forms, lower case, replacements.
using Normalizer = std::function<void(TextPiece&)>;

// Appends what one piece splits into. May change the text too (byte-level alphabets, U+2581).
using PreTokenizer = std::function<void(const TextPiece&, std::vector<TextPiece>&)>;

}  // namespace braid::text
