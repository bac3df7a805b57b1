// What transformers' tokenizer classes fix in code, regardless of their files.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "text/special_tokens.h"
#include "text/vocabulary/bpe.h"

namespace braid::text {

enum class TokenizerKind { kClip, kT5, kQwen2 };

// "CLIPTokenizer", "T5TokenizerFast" and so on; nothing for other classes.
std::optional<TokenizerKind> kind_of_class(std::string_view tokenizer_class);

// `extra_ids`: the number of T5's "<extra_id_0>" and so on.
TokenDefaults token_defaults(TokenizerKind kind, std::int64_t extra_ids);
BpeOptions bpe_options(TokenizerKind kind, const std::optional<std::string>& unk_token);

// These have the form of tokenizer.json. T5's normalizer is its file's character map.
Json normalizer_of(TokenizerKind kind);
Json pre_tokenizer_of(TokenizerKind kind, bool add_prefix_space);

}  // namespace braid::text
