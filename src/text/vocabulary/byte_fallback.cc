#include "text/vocabulary/byte_fallback.h"

#include <string>

namespace braid::text {

std::optional<std::vector<std::int64_t>> byte_tokens(std::string_view text,
                                                     const Vocabulary& vocabulary) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::vector<std::int64_t> out;
  std::string token = "<0x00>";
  for (const unsigned char byte : text) {
    token[3] = kDigits[byte >> 4];
    token[4] = kDigits[byte & 15];
    const auto id = vocabulary.find(token);
    if (!id) return {};
    out.push_back(*id);
  }
  return out;
}

}  // namespace braid::text
