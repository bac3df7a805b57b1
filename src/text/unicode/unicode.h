// Unicode as the reference's tokenizers see it: character classes, normalisation forms.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace braid::unicode {

// The last character of text[0, end), end > 0.
Utf8Character decode_before(std::string_view text, std::size_t end);

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
