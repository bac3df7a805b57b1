// The steps of a tokenizer, in the order in which text passes through them.
#pragma once

#include <cstdint>

#include "text/added_tokens.h"
#include "text/piece.h"
#include "text/post_processor.h"
#include "text/vocabulary/model.h"

namespace braid::text {

enum class Side { left, right };

struct TextPipeline {
  Model model;
  AddedTokens added = {};
  Normalizer normalize = {};       // may be empty
  PreTokenizer pre_tokenize = {};  // may be empty
  Frame frame = {};
  Side truncate = Side::right;
  Side pad = Side::right;
  std::int64_t pad_id = 0;
  std::int64_t model_max_length = 0;
};

}  // namespace braid::text
