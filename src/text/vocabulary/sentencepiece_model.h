// spiece.model: SentencePiece's protocol buffer, read by hand. The library itself crashes on
// hostile files while it loads them, and cuts some texts differently from transformers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/vocabulary/unigram.h"

namespace braid::text {

struct SentencePieceModel {
  std::vector<Unigram::ScoredToken> tokens;
  std::vector<AddedToken> added;  // its control and user-defined tokens
  std::string charsmap;           // may be empty; see charsmap.h
};

// Throws InputError naming `source` when `bytes` are no such file, or hold another model than a
// unigram one.
SentencePieceModel read_sentencepiece_model(std::string_view bytes, const std::string& source);

}  // namespace braid::text
