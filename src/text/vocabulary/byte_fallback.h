// "<0x41>": tokens for single bytes, SentencePiece's way to spell what it does not know.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/vocabulary/vocabulary.h"

namespace braid::text {

// The tokens of all bytes of `text`; nothing when one of them is not in the vocabulary.
std::optional<std::vector<std::int64_t>> byte_tokens(std::string_view text,
                                                     const Vocabulary& vocabulary);

}  // namespace braid::text
