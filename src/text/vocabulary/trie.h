// A map from byte strings to numbers that finds all keys a text begins with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace braid::text {

class Trie {
 public:
  // Bytes. Real tokens have a few hundred at most; without a bound, a hostile file and a long text
  // could make the search quadratic.
  static constexpr std::size_t kLongestKey = 1024;

  Trie() : nodes_(1) {}

  // Returns false if the key already exists; its value is then replaced. Keys must not exceed
  // kLongestKey.
  bool insert(std::string_view key, std::uint32_t value);

  // Calls visit(length, value) for each key that `text` begins with, shortest first.
  template <class Visit>
  void for_each_prefix(std::string_view text, Visit visit) const {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = child(node, static_cast<unsigned char>(text[i]));
      if (node == 0) return;
      if (nodes_[node].value) visit(i + 1, *nodes_[node].value);
    }
  }

 private:
  // Children are a linked list: vocabularies branch little, and a file of n bytes makes n nodes.
  struct Node {
    unsigned char byte = 0;
    std::uint32_t first_child = 0, next_sibling = 0;  // 0: none
    std::optional<std::uint32_t> value;
  };

  std::uint32_t child(std::uint32_t node, unsigned char byte) const {
    auto at = nodes_[node].first_child;
    while (at != 0 && nodes_[at].byte != byte) at = nodes_[at].next_sibling;
    return at;
  }

  std::vector<Node> nodes_;  // the root first
};

}  // namespace braid::text
