#include "text/tokenizer_kind.h"

#include <nlohmann/json.hpp>

namespace braid::text {
namespace {

// How CLIP's release splits text into words (simple_tokenizer.py), and how GPT-4 does, with single
// digits.
constexpr const char* kClipWords =
    R"(<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}])"
    R"(|[^\s\p{L}\p{N}]+)";
constexpr const char* kQwen2Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

Json split_at(const char* regex, const char* behavior, bool invert) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", regex}}},
          {"behavior", behavior},
          {"invert", invert}};
}

Json sequence(const char* key, std::initializer_list<Json> steps) {
  return {{"type", "Sequence"}, {key, Json::array_t(steps)}};
}

}  // namespace

std::optional<TokenizerKind> kind_of_class(std::string_view tokenizer_class) {
  if (tokenizer_class.ends_with("Fast")) tokenizer_class.remove_suffix(4);
  if (tokenizer_class == "CLIPTokenizer") return TokenizerKind::kClip;
  if (tokenizer_class == "T5Tokenizer") return TokenizerKind::kT5;
  if (tokenizer_class == "Qwen2Tokenizer") return TokenizerKind::kQwen2;
  return {};
}

TokenDefaults token_defaults(TokenizerKind kind, std::int64_t extra_ids) {
  TokenDefaults out;
  if (kind == TokenizerKind::kT5) {
    out.named = {{"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}};
    for (std::int64_t i = 0; i < extra_ids; ++i)
      out.extra.push_back({.content = "<extra_id_" + std::to_string(i) + ">", .special = true});
    return out;
  }
  for (const char* name : {"eos_token", "unk_token", "pad_token"})
    out.named[name] = "<|endoftext|>";
  if (kind == TokenizerKind::kClip) out.named["bos_token"] = "<|startoftext|>";
  return out;
}

BpeOptions bpe_options(TokenizerKind kind, const std::optional<std::string>& unk_token) {
  BpeOptions options;
  if (kind == TokenizerKind::kClip) {
    options.end_suffix = "</w>";
    options.unk_token = unk_token;
  }
  return options;
}

Json normalizer_of(TokenizerKind kind) {
  if (kind == TokenizerKind::kQwen2) return {{"type", "NFC"}};
  if (kind == TokenizerKind::kT5) return nullptr;
  const Json one_space = {{"type", "Replace"}, {"pattern", {{"Regex", "\\s+"}}}, {"content", " "}};
  return sequence("normalizers", {{{"type", "NFC"}}, one_space, {{"type", "Lowercase"}}});
}

Json pre_tokenizer_of(TokenizerKind kind, bool add_prefix_space) {
  if (kind == TokenizerKind::kT5) {
    const Json metaspace = {
        {"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "always"}};
    return sequence("pretokenizers", {{{"type", "WhitespaceSplit"}}, metaspace});
  }
  const bool is_clip = kind == TokenizerKind::kClip;
  const auto split =
      is_clip ? split_at(kClipWords, "Removed", true) : split_at(kQwen2Words, "Isolated", false);
  const Json bytes = {{"type", "ByteLevel"},
                      {"add_prefix_space", !is_clip && add_prefix_space},
                      {"use_regex", is_clip}};
  return sequence("pretokenizers", {split, bytes});
}

}  // namespace braid::text
