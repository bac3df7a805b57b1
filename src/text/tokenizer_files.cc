#include "text/tokenizer_files.h"

#include "base/error.h"
#include "base/file.h"
#include "text/build_tokenizer.h"

namespace braid {
namespace {

constexpr std::uint64_t kLargestFile = 64u << 20;  // Gemma's tokenizer.json has 33 MB

std::optional<std::string> read_if_there(const std::filesystem::path& path) {
  if (!is_there(path)) return {};
  return read_file(path, kLargestFile);
}

}  // namespace

TokenizerFiles read_tokenizer_files(const std::filesystem::path& folder) {
  require(is_folder(folder), "cannot read a tokenizer from ", folder, ": it is not a folder");
  TokenizerFiles files{.folder = folder.string()};
  files.tokenizer_json = read_if_there(folder / "tokenizer.json");
  if (!files.tokenizer_json) {
    files.vocab_json = read_if_there(folder / "vocab.json");
    files.merges_txt = read_if_there(folder / "merges.txt");
    files.spiece_model = read_if_there(folder / "spiece.model");
  }
  require(files.tokenizer_json || files.spiece_model || (files.vocab_json && files.merges_txt),
          "cannot read a tokenizer from ", folder,
          ": it holds neither tokenizer.json, nor vocab.json and merges.txt, nor spiece.model");
  files.tokenizer_config = read_if_there(folder / "tokenizer_config.json");
  files.special_tokens_map = read_if_there(folder / "special_tokens_map.json");
  files.added_tokens = read_if_there(folder / "added_tokens.json");
  return files;
}

std::unique_ptr<const Tokenizer> load_tokenizer(const std::filesystem::path& folder) {
  return build_tokenizer(read_tokenizer_files(folder));
}

}  // namespace braid
