// SentencePiece's precompiled character map from texts to replacements: a double-array trie (Yata's
// darts-clone) followed by the replacements, each ending in a zero byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::text {

class Charsmap {
 public:
  // `bytes`: u32 size of the trie in bytes, its u32 units, the replacements. Little endian.
  // Throws InputError naming `source`.
  Charsmap(std::string_view bytes, const std::string& source);

  // Applies the replacements as the reference's `Precompiled` does: a grapheme cluster shorter than
  // six bytes that begins with a key is replaced whole, whatever follows the key.
  std::string apply(std::string_view text) const;

 private:
  std::optional<std::string_view> replacement(std::string_view text) const;  // for the shortest key

  std::vector<std::uint32_t> trie_;
  std::string replacements_;
};

}  // namespace braid::text
