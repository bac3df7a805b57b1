// GPT-2's byte-level alphabet: every byte is a printable character, so no text is unknown.
#pragma once

#include <string>
#include <string_view>

namespace braid::text {

// Each byte of `text` as its character: a space is U+0120, a line feed is U+010A.
std::string in_byte_alphabet(std::string_view text);

}  // namespace braid::text
