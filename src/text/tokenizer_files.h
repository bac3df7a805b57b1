// The files in a tokenizer's folder, and building a tokenizer from them, also without a disk.
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

// Throws InputError naming the file. See load_tokenizer() for precedence.
std::unique_ptr<const Tokenizer> build_tokenizer(const TokenizerFiles& files);

}  // namespace braid
