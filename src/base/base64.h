// Base64 (RFC 4648).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace braid {

std::string base64(std::string_view bytes);
void append_base64(std::string& text, std::string_view bytes);

// Decodes both of the RFC's alphabets. Skips the padding, which may be absent, and what the web
// calls ASCII whitespace (WHATWG Infra, forgiving-base64): spaces, tabs, line ends, form feeds.
// nullopt if `text` has any other character, or a last one that is part of no byte.
std::optional<std::string> decode_base64(std::string_view text);

// The index of the first character for which decode_base64() refuses `text`.
std::optional<std::size_t> foreign_in_base64(std::string_view text);

}  // namespace braid
