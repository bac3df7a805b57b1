// The files in a tokenizer's folder, and the tokenizer that they describe.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "text/tokenizer.h"

namespace braid {

struct TokenizerFiles {
  std::string folder;  // for errors
  std::optional<std::string> tokenizer_json = {}, vocab_json = {}, merges_txt = {};
  std::optional<std::string> spiece_model = {};
  std::optional<std::string> tokenizer_config = {}, special_tokens_map = {}, added_tokens = {};
};

// Reads only what build_tokenizer() needs. Throws InputError naming the folder if it does not exist
// or holds no tokenizer.
TokenizerFiles read_tokenizer_files(const std::filesystem::path& folder);

// Reads the first that exists of tokenizer.json, vocab.json with merges.txt, and spiece.model, as
// transformers does; also tokenizer_config.json, special_tokens_map.json, added_tokens.json. If
// tokenizer_config.json names CLIPTokenizer, T5Tokenizer or Qwen2Tokenizer, that class provides
// normalizer and pre-tokenizer, and only the vocabulary comes from tokenizer.json; other classes
// use all of it. Without a configured length (or with the "very large" one) the length is 77 for
// CLIP and 512 for others. Throws InputError naming the folder or the file.
std::unique_ptr<const Tokenizer> load_tokenizer(const std::filesystem::path& folder);

}  // namespace braid
