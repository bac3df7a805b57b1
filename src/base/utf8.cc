#include "base/utf8.h"

#include <algorithm>
#include <cstdint>

namespace braid {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

bool is_continuation(char c) { return (std::uint8_t(c) & 0xC0) == 0x80; }

bool is_surrogate(char32_t code) { return code >= 0xD800 && code <= 0xDFFF; }

}  // namespace

Utf8Character decode_utf8(std::string_view text, std::size_t at) {
  const auto lead = std::uint8_t(text[at]);
  if (lead < 0x80) return {lead, 1};
  const Utf8Character invalid{kReplacement, 1};
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC0 || lead > 0xF4 || text.size() - at < size) return invalid;
  char32_t code = lead & (0x7F >> size);
  for (std::size_t i = at + 1; i < at + size; ++i) {
    if (!is_continuation(text[i])) return invalid;
    code = code << 6 | (std::uint8_t(text[i]) & 0x3F);
  }
  constexpr char32_t kLeast[] = {0x80, 0x800, 0x10000};  // of 2, 3 and 4 bytes
  if (code < kLeast[size - 2] || code > 0x10FFFF || is_surrogate(code)) return invalid;
  return {code, size};
}

void append_utf8(std::string& text, char32_t code) {
  const auto continuation = [&](int shift) { return char(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) {
    text += char(code);
  } else if (code < 0x800) {
    text += {char(0xC0 | code >> 6), continuation(0)};
  } else if (code < 0x10000) {
    text += {char(0xE0 | code >> 12), continuation(6), continuation(0)};
  } else {
    text += {char(0xF0 | code >> 18), continuation(12), continuation(6), continuation(0)};
  }
}

bool is_valid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto character = decode_utf8(text, at);
    if (character.code == kReplacement && character.size == 1) return false;
    at += character.size;
  }
  return true;
}

std::string as_valid_utf8(std::string_view text) {
  std::string valid;
  for (std::size_t at = 0; at < text.size();) {
    const auto character = decode_utf8(text, at);
    append_utf8(valid, character.code);
    at += character.size;
  }
  return valid;
}

std::size_t num_characters(std::string_view text) {
  return std::size_t(std::ranges::count_if(text, [](char c) { return !is_continuation(c); }));
}

}  // namespace braid
