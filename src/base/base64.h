// Base64 (RFC 4648).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace braid {

std::string base64(std::string_view bytes);
void append_base64(std::string& text, std::string_view bytes);

// Decodes both of the RFC's alphabets and skips line ends and the padding; nullopt if `text` has
// any other character.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace braid
