// The models of tokenizer.json, and of the equivalent older files.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/json.h"
#include "text/vocabulary/bpe.h"
#include "text/vocabulary/model_json.h"
#include "text/vocabulary/unigram.h"
#include "text/vocabulary/word_level.h"

namespace braid::text {

using Model = std::variant<Bpe, Unigram, WordLevel>;

const Vocabulary& vocabulary_of(const Model& model);
std::size_t size_of(const Model& model);  // tokens, not the largest id
void encode(const Model& model, std::string_view text, std::vector<std::int64_t>& ids);

// `json`: the object under "model". All of these throw InputError naming `source`.
BpeOptions read_bpe_options(const Json& json, const std::string& source);
Unigram::Options read_unigram_options(const Json& json, const std::string& source);

// Built from the lists of the same file.
Bpe make_bpe(Lists lists, BpeOptions options, const std::string& source);
Unigram make_unigram(Lists lists, Unigram::Options options, const std::string& source);

// The model of a tokenizer.json.
Model make_model(Lists lists, const Json& json, const std::string& source);

// `vocab` and `merges` are the contents of vocab.json and merges.txt; `folder` names them in
// errors.
Bpe read_bpe_files(std::string_view vocab, std::string_view merges, BpeOptions options,
                   const std::string& folder);

}  // namespace braid::text
