#include "text/vocabulary/word_level.h"

#include "base/error.h"

namespace braid::text {

void WordLevel::encode(std::string_view word, std::vector<std::int64_t>& ids) const {
  if (word.empty()) return;
  auto id = vocabulary_.find(word);
  if (!id && unk_token_) id = vocabulary_.find(*unk_token_);
  require(id.has_value(), "the text has a word, '", word,
          "', that the tokenizer does not know, and it has no unk token");
  ids.push_back(*id);
}

}  // namespace braid::text
