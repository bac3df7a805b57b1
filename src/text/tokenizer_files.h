// The files of a tokenizer's folder, and what becomes of them. Also for what is not on a disk.
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

// Reads only what build_tokenizer() needs. Throws InputError naming the folder when it is none or
// holds no tokenizer.
TokenizerFiles read_tokenizer_files(const std::filesystem::path& folder);

// Throws InputError naming the file. See load_tokenizer() for which file counts.
std::unique_ptr<const Tokenizer> build_tokenizer(const TokenizerFiles& files);

}  // namespace braid
