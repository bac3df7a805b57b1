// The normalizers of tokenizer.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "text/piece.h"

namespace braid::text {

// `json`: the object under "normalizer", or null. Knows Sequence, NFC, NFD, NFKC, NFKD, Lowercase,
// Strip, StripAccents, Replace, Prepend, Nmt, ByteLevel and Precompiled. Throws InputError naming
// `source` and the unknown or malformed type.
Normalizer read_normalizer(const nlohmann::json& json, const std::string& source);

// SentencePiece's own character map; null if `charsmap` is empty.
Normalizer charsmap_normalizer(std::string_view charsmap, const std::string& source);

}  // namespace braid::text
