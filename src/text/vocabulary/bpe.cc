#include "text/vocabulary/bpe.h"

#include <queue>
#include <tuple>

#include "base/error.h"
#include "base/utf8.h"
#include "text/vocabulary/byte_fallback.h"

namespace braid::text {
namespace {

std::uint64_t key_of(std::int64_t left, std::int64_t right) {
  return std::uint64_t(left) << 32 | std::uint64_t(right);
}

}  // namespace

Bpe::Bpe(Vocabulary vocabulary, const Merges& merges, BpeOptions options, const std::string& source)
    : vocabulary_(std::move(vocabulary)), options_(std::move(options)) {
  const auto id_of = [&](std::string_view token) {
    const auto id = vocabulary_.find(token);
    require(id.has_value(), source, " merges '", token, "', which is not in its vocabulary");
    return *id;
  };
  merges_.reserve(merges.size());
  const auto prefix = options_.continuing_prefix.size();
  std::string result;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto [left, right] = merges[rank];
    const auto key = key_of(id_of(left), id_of(right));
    require(right.size() >= prefix, source, " merges '", right,
            "', which is shorter than the prefix of continuing tokens");
    result.assign(left).append(right.substr(prefix));
    merges_[key] = {std::uint32_t(rank), std::uint32_t(id_of(result))};
  }
}

const Bpe::Merge* Bpe::find(std::int64_t left, std::int64_t right) const {
  const auto it = merges_.find(key_of(left, right));
  return it == merges_.end() ? nullptr : &it->second;
}

std::int64_t Bpe::unk() const {
  const auto id = vocabulary_.find(*options_.unk_token);
  require(id.has_value(),
          "the text has characters that the tokenizer does not know, and its token '",
          *options_.unk_token, "' for them is not in its vocabulary");
  return *id;
}

bool Bpe::append_bytes(std::string_view text, std::vector<std::int64_t>& ids) const {
  const auto bytes = byte_tokens(text, vocabulary_);
  if (!bytes) return false;
  ids.insert(ids.end(), bytes->begin(), bytes->end());
  return true;
}

std::vector<std::int64_t> Bpe::characters(std::string_view word) const {
  std::vector<std::int64_t> ids;
  std::int64_t pending = -1;  // an unk that may still grow; -1: none
  const auto flush = [&] {
    if (pending >= 0) ids.push_back(pending);
    pending = -1;
  };
  for (std::size_t at = 0; at < word.size();) {
    const auto size = decode_utf8(word, at).size;
    std::string text(at == 0 ? "" : options_.continuing_prefix);
    text += word.substr(at, size);
    at += size;
    if (at == word.size()) text += options_.end_suffix;
    if (const auto id = vocabulary_.find(text)) {
      flush();
      ids.push_back(*id);
    } else if (options_.byte_fallback && append_bytes(text, ids)) {
      continue;  // an earlier unk stays pending and comes out after it, as in the reference
    } else if (options_.unk_token) {
      if (!options_.fuse_unk) flush();
      pending = unk();
    }
  }
  flush();
  return ids;
}

// The symbols of one word while they merge: a doubly linked list.
class Bpe::Word {
 public:
  Word(const Bpe& bpe, std::vector<std::int64_t> ids) : bpe_(bpe) {
    symbols_.reserve(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) symbols_.push_back({ids[i], i - 1, i + 1});
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) consider(i);
  }

  void merge_all() {
    while (!queue_.empty()) {
      const auto best = queue_.top();
      queue_.pop();
      if (!symbols_[best.at].is_gone && still_holds(best)) merge(best);
    }
  }

  void append_to(std::vector<std::int64_t>& ids) const {
    for (const auto& symbol : symbols_)
      if (!symbol.is_gone) ids.push_back(symbol.id);
  }

 private:
  struct Symbol {
    std::int64_t id;
    std::size_t previous, next;  // out of range: none
    bool is_gone = false;
  };
  struct Candidate {
    std::uint32_t rank;
    std::size_t at;  // of the left symbol
    std::uint32_t result;
    bool operator<(const Candidate& other) const {  // the top is the lowest rank, then leftmost
      return std::tie(rank, at) > std::tie(other.rank, other.at);
    }
  };

  void consider(std::size_t at) {
    const auto& symbol = symbols_[at];
    if (symbol.next >= symbols_.size()) return;
    if (const auto* found = bpe_.find(symbol.id, symbols_[symbol.next].id))
      queue_.push({found->rank, at, found->result});
  }

  // A candidate may outlive merges of its neighbours.
  bool still_holds(const Candidate& candidate) const {
    const auto& left = symbols_[candidate.at];
    if (left.next >= symbols_.size()) return false;
    const auto* found = bpe_.find(left.id, symbols_[left.next].id);
    return found && found->result == candidate.result;
  }

  void merge(const Candidate& candidate) {
    auto& left = symbols_[candidate.at];
    auto& right = symbols_[left.next];
    left.id = candidate.result;
    left.next = right.next;
    right.is_gone = true;
    if (left.next < symbols_.size()) symbols_[left.next].previous = candidate.at;
    if (left.previous < symbols_.size()) consider(left.previous);
    consider(candidate.at);
  }

  const Bpe& bpe_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate> queue_;
};

void Bpe::encode(std::string_view text, std::vector<std::int64_t>& ids) const {
  if (options_.ignore_merges) {
    if (const auto id = vocabulary_.find(text)) return ids.push_back(*id);
  }
  Word word(*this, characters(text));
  word.merge_all();
  word.append_to(ids);
}

}  // namespace braid::text
