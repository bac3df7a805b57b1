// spiece.model: SentencePiece's protocol buffer, parsed by hand. The library itself crashes on
// hostile files while loading, and splits some texts differently from transformers.
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

// Throws InputError naming `source` if `bytes` are not such a file, or hold a model other than
// unigram.
SentencePieceModel read_sentencepiece_model(std::string_view bytes, const std::string& source);

}  // namespace braid::text
