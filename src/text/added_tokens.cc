#include "text/added_tokens.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/utf8.h"
#include "text/unicode/regex.h"
#include "text/unicode/unicode.h"

namespace braid::text {
namespace {

bool is_word_character(std::string_view c) {
  static const Regex word("[\\w\\p{Alphabetic}\\x{200C}\\x{200D}]", "single_word");
  return !word.find_all(c).empty();
}

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  const auto touches = [&](std::size_t at, std::size_t size) {
    return is_word_character(text.substr(at, size));
  };
  if (begin > 0) {
    const auto size = unicode::decode_before(text, begin).size;
    if (touches(begin - size, size)) return false;
  }
  return end == text.size() || !touches(end, decode_utf8(text, end).size);
}

std::size_t without_space_before(std::string_view text, std::size_t begin) {
  while (begin > 0) {
    const auto c = unicode::decode_before(text, begin);
    if (!unicode::is_whitespace(c.code)) break;
    begin -= c.size;
  }
  return begin;
}

std::size_t without_space_behind(std::string_view text, std::size_t end) {
  while (end < text.size()) {
    const auto c = decode_utf8(text, end);
    if (!unicode::is_whitespace(c.code)) break;
    end += c.size;
  }
  return end;
}

}  // namespace

void AddedTokens::add(const std::vector<AddedToken>& tokens, const Vocabulary& model,
                      std::size_t model_size) {
  auto next = std::int64_t(model_size);
  if (!tokens_.empty()) next = std::max(next, tokens_.rbegin()->first + 1);
  for (const auto& token : tokens) {
    if (token.content.empty()) continue;
    auto id = ids_.find(token.content);
    if (!id) id = model.find(token.content);
    if (!id) id = next++;
    ids_.insert_or_assign(token.content, *id);
    tokens_[*id] = token;
  }
}

void AddedTokens::insert(Trie& trie, std::string_view text, std::int64_t id,
                         const std::string& source) {
  if (text.empty()) return;  // normalization left nothing to find
  require(text.size() <= Trie::kLongestKey, source, " has an added token of ", text.size(),
          " bytes, at most ", Trie::kLongestKey, " were expected");
  require(trie.insert(text, std::uint32_t(id)), source, " has the added token '",
          tokens_[id].content, "' twice");
}

void AddedTokens::prepare(const Normalizer& normalize, bool split_special,
                          const std::string& source) {
  split_special_ = split_special;
  for (const auto& [id, token] : tokens_) {
    if (!token.normalized) {
      insert(raw_, token.content, id, source);
      continue;
    }
    TextPiece piece{.text = token.content};
    if (normalize) normalize(piece);
    insert(normalized_, piece.text, id, source);
  }
}

void AddedTokens::cut(const TextPiece& piece, const Trie& trie, std::vector<TextPiece>& out) const {
  const std::string_view text = piece.text;
  const auto append = [&](std::size_t begin, std::size_t end, std::optional<std::int64_t> token) {
    if (begin < end)
      out.push_back(
          {std::string(text.substr(begin, end - begin)), piece.at_start && begin == 0, token});
  };
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = 0;
    std::int64_t id = 0;
    trie.for_each_prefix(text.substr(at), [&](std::size_t n, std::uint32_t value) {
      length = n;  // the longest comes last
      id = value;
    });
    if (length == 0) {
      ++at;
      continue;
    }
    auto begin = at;
    auto end = at += length;
    const auto& token = tokens_.at(id);
    if (split_special_ && token.special) continue;
    if (token.single_word && !stands_alone(text, begin, end)) continue;
    if (token.lstrip) begin = std::max(without_space_before(text, begin), done);
    if (token.rstrip) end = without_space_behind(text, end);
    append(done, begin, {});
    append(begin, end, id);
    done = end;
  }
  append(done, text.size(), {});
}

std::vector<TextPiece> AddedTokens::extract(std::string_view text,
                                            const Normalizer& normalize) const {
  std::vector<TextPiece> raw, out;
  cut({std::string(text), true, {}}, raw_, raw);
  for (auto& piece : raw) {
    if (piece.token) {
      out.push_back(std::move(piece));
      continue;
    }
    if (normalize) normalize(piece);
    cut(piece, normalized_, out);
  }
  return out;
}

std::string AddedTokens::with_all_vectors(std::string_view text,
                                          const Normalizer& normalize) const {
  std::set<std::string> named;
  for (const auto& piece : extract(text, normalize))
    if (piece.token) named.insert(tokens_.at(*piece.token).content);
  std::string out(text);
  for (const auto& token : named) {
    std::string followers;
    for (int i = 1; find(text_of(token, '_', i)); ++i) followers += text_of(' ', token, '_', i);
    if (followers.empty()) continue;
    for (auto at = out.find(token); at != out.npos; at = out.find(token, at + followers.size()))
      out.insert(at += token.size(), followers);
  }
  return out;
}

}  // namespace braid::text
