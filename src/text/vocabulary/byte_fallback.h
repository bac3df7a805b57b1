// "<0x41>": tokens for single bytes, SentencePiece's spelling of unknown text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/vocabulary/vocabulary.h"

namespace braid::text {

// The tokens of all bytes of `text`; nothing if one of them is not in the vocabulary.
std::optional<std::vector<std::int64_t>> byte_tokens(std::string_view text,
                                                     const Vocabulary& vocabulary);

}  // namespace braid::text
