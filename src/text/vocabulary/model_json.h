// tokenizer.json and vocab.json without a JSON tree of their vocabulary: it is nearly all of the
// file, and a JSON value per token would take longer than everything else together.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "text/vocabulary/unigram.h"
#include "text/vocabulary/vocabulary.h"

namespace braid::text {

struct Lists {
  // "vocab", as {"token": id} or as [["token", score]]; fills one of the two.
  Vocabulary vocabulary;
  std::vector<Unigram::ScoredToken> scored;
  // "merges": ["left right"] or [["left", "right"]].
  std::vector<std::pair<std::string, std::string>> merges;
};

// The document with null in place of "vocab" and "merges" under "model", which go into `lists`.
// Throws InputError naming `source` if it is not JSON, repeats a key or a token, nests too deep, or
// has lists in another form.
Json read_model_json(std::string_view text, const std::string& source, Lists& lists);

// vocab.json: {"token": id}.
Vocabulary read_vocabulary_json(std::string_view text, const std::string& source);

// "left right", as in merges.txt and older tokenizer.json files.
std::pair<std::string_view, std::string_view> read_merge(std::string_view line,
                                                         const std::string& source);

}  // namespace braid::text
