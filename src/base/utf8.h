// UTF-8 (RFC 3629): neither surrogates nor overlong forms, and nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace braid {

struct Utf8Character {
  char32_t code;
  std::size_t size;  // bytes, at least 1
};

// The character at `at` < text.size(). Bytes that are not UTF-8 are returned one by one as U+FFFD.
Utf8Character decode_utf8(std::string_view text, std::size_t at);
// `code` is a character that UTF-8 has.
void append_utf8(std::string& text, char32_t code);

bool is_valid_utf8(std::string_view text);
// The text with U+FFFD in place of each byte that is not UTF-8.
std::string as_valid_utf8(std::string_view text);
// Counts the bytes that begin a character.
std::size_t num_characters(std::string_view text);

}  // namespace braid
