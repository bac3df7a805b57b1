// Unicode as the reference's tokenizers see it: UTF-8, character classes, normalisation forms.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace braid::unicode {

bool is_valid_utf8(std::string_view text);

struct Char {
  char32_t code;
  std::size_t size;  // bytes, at least 1
};

// The character at `at` < text.size(). Bytes that are not UTF-8 are returned one by one as U+FFFD.
Char decode(std::string_view text, std::size_t at);
// The last character of text[0, end), end > 0.
Char decode_before(std::string_view text, std::size_t end);
void append(std::string& text, char32_t code);

bool is_whitespace(char32_t code);   // White_Space
bool is_numeric(char32_t code);      // Nd, Nl, No
bool is_punctuation(char32_t code);  // P*, and all of ASCII's symbols
bool is_mark(char32_t code);         // M* of Unicode 9

enum class Form { nfc, nfd, nfkc, nfkd };
std::string normalized(std::string_view text, Form form);

// Character by character: no final sigma, no locale.
std::string lower_case(std::string_view text);

// Bytes of the extended grapheme cluster that begins at `begin` < text.size().
std::size_t grapheme_size(std::string_view text, std::size_t begin);

}  // namespace braid::unicode
