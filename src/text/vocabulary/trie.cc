#include "text/vocabulary/trie.h"

#include <utility>

namespace braid::text {

bool Trie::insert(std::string_view key, std::uint32_t value) {
  std::uint32_t node = 0;
  for (const unsigned char byte : key) {
    auto next = child(node, byte);
    if (next == 0) {
      next = std::uint32_t(nodes_.size());
      nodes_.push_back({byte, 0, nodes_[node].first_child, {}});
      nodes_[node].first_child = next;
    }
    node = next;
  }
  return !std::exchange(nodes_[node].value, value).has_value();
}

}  // namespace braid::text
