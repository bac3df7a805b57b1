#include "text/vocabulary/byte_level.h"

#include <array>

#include "base/utf8.h"

namespace braid::text {
namespace {

bool is_printable(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

// Printable Latin-1 bytes stand for themselves, the others map to U+0100 onwards, in order.
std::array<std::string, 256> alphabet() {
  std::array<std::string, 256> out;
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte)
    append_utf8(out[std::size_t(byte)], is_printable(byte) ? char32_t(byte) : next++);
  return out;
}

}  // namespace

std::string in_byte_alphabet(std::string_view text) {
  static const auto characters = alphabet();
  std::string out;
  out.reserve(2 * text.size());
  for (const unsigned char byte : text) out += characters[byte];
  return out;
}

}  // namespace braid::text
