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

enum class Family { clip, t5, qwen2 };

// "CLIPTokenizer", "T5TokenizerFast" and so on; nothing for other classes.
std::optional<Family> family_named(std::string_view tokenizer_class);

// `extra_ids`: the number of T5's "<extra_id_0>" and so on.
TokenDefaults token_defaults(Family family, std::int64_t extra_ids);
BpeOptions bpe_options(Family family, const std::optional<std::string>& unk_token);

// These have the form of tokenizer.json. T5's normalizer is its file's character map.
Json normalizer_of(Family family);
Json pre_tokenizer_of(Family family, bool add_prefix_space);

}  // namespace braid::text
