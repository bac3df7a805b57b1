// Tokens and their ids: an open-addressing table over one byte buffer, as loading inserts 50,000 to
// 150,000 of them before the first prompt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::text {

constexpr std::int64_t kLargestTokenId = INT32_MAX;

class Vocabulary {
 public:
  // Returns false, without changes, if the token already exists. Ids are at most kLargestTokenId.
  bool insert(std::string_view token, std::int64_t id);
  void insert_or_assign(std::string_view token, std::int64_t id);

  std::optional<std::int64_t> find(std::string_view token) const;
  std::size_t size() const { return entries_.size(); }
  std::int64_t end_id() const { return end_id_; }  // largest id + 1

 private:
  struct Entry {
    std::size_t begin;
    std::uint32_t size, hash, id;
  };

  // The token's entry, or the empty slot where it belongs.
  std::size_t slot_of(std::string_view token, std::uint32_t hash) const;
  void append(std::string_view token, std::uint32_t hash, std::int64_t id);
  void grow();

  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  // index into entries_ + 1; 0: empty. A power of two of them
  std::int64_t end_id_ = 0;
};

}  // namespace braid::text
