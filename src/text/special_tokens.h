// The tokens that a folder adds to its model's vocabulary, and which of them are eos, pad and so
// on. transformers 5 collects them from up to four files; this follows its order of precedence.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "text/added_tokens.h"

namespace braid::text {

// JSON null if the folder has no such file.
struct TokenFiles {
  const Json& config;          // tokenizer_config.json
  const Json& special_map;     // special_tokens_map.json, older
  const Json& added;           // added_tokens.json, older still: token -> id
  const Json& tokenizer_json;  // its "added_tokens"
  std::string folder;          // for errors
};

// A tokenizer class's defaults if the files are silent.
struct TokenDefaults {
  std::map<std::string, std::string> named;  // "eos_token" -> "</s>"
  std::vector<AddedToken> extra;
};

struct SpecialTokens {
  std::map<std::string, std::string> named;
  std::vector<AddedToken> added;    // in the order to add them
  std::vector<AddedToken> special;  // the named and the extra ones, as special tokens

  // Nothing if there is no such token.
  std::optional<std::string> find(const std::string& name) const;
};

// `known`: added tokens the tokenizer already has. Throws InputError naming the folder.
SpecialTokens collect_special_tokens(const TokenFiles& files, const TokenDefaults& defaults,
                                     const std::vector<AddedToken>& known);

// The list under "added_tokens" of tokenizer.json, in the file's order.
std::vector<AddedToken> read_added_tokens(const Json& list, const std::string& source);

}  // namespace braid::text
