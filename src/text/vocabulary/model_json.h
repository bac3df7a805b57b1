// tokenizer.json and vocab.json without a tree of their vocabulary: it is nearly all of the file,
// and a JSON value for each token would take longer than everything else together.
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
  // "vocab": one of the two, as {"token": id} or as [["token", score]].
  Vocabulary vocabulary;
  std::vector<Unigram::ScoredToken> scored;
  // "merges": ["left right"] or [["left", "right"]].
  std::vector<std::pair<std::string, std::string>> merges;
};

// The document with null in place of "vocab" and "merges" under "model", which go into `lists`.
// Throws InputError naming `source` when it is not JSON, has a key or a token twice, nests too
// deep, or has lists of another form.
Json read_model_json(std::string_view text, const std::string& source, Lists& lists);

// vocab.json: {"token": id}.
Vocabulary read_vocabulary_json(std::string_view text, const std::string& source);

// "left right", as merges.txt and older tokenizer.json have it.
std::pair<std::string_view, std::string_view> read_merge(std::string_view line,
                                                         const std::string& source);

}  // namespace braid::text
