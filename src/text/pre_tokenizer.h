// The pre-tokenizers of tokenizer.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "text/piece.h"

namespace braid::text {

// `json`: the object under "pre_tokenizer", or null. Knows Sequence, Split, ByteLevel, Metaspace,
// Whitespace, WhitespaceSplit, Digits and Punctuation. Throws InputError naming `source` and the
// unknown or malformed type.
PreTokenizer read_pre_tokenizer(const nlohmann::json& json, const std::string& source);

}  // namespace braid::text
