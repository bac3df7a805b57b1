#include "base/base64.h"

#include <array>

namespace braid {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr signed char kForeign = -1, kSpace = -2;

std::array<signed char, 256> values_of_characters() {
  std::array<signed char, 256> values{};
  values.fill(kForeign);
  for (const unsigned char space : {' ', '\t', '\n', '\f', '\r'}) values[space] = kSpace;
  for (std::size_t i = 0; i < kDigits.size(); ++i)
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<signed char>(i);
  values['-'] = 62;  // of the alphabet for URLs (section 5)
  values['_'] = 63;
  return values;
}

// Returns a digit's value, 0 to 63, or one of the two above.
int value_of(char c) {
  static const auto values = values_of_characters();
  return values[static_cast<unsigned char>(c)];
}

std::string_view without_padding(std::string_view text) {
  while (!text.empty() && (text.back() == '=' || value_of(text.back()) == kSpace))
    text.remove_suffix(1);
  return text;
}

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text;
  append_base64(text, bytes);
  return text;
}

void append_base64(std::string& text, std::string_view bytes) {
  auto at = text.size();
  text.resize(at + (bytes.size() + 2) / 3 * 4, '=');
  const auto digits_of = [&](unsigned three, int count) {
    for (int k = 0; k < count; ++k) text[at + std::size_t(k)] = kDigits[three >> (18 - 6 * k) & 63];
    at += 4;
  };
  const auto byte = [&](std::size_t i) { return unsigned(static_cast<unsigned char>(bytes[i])); };
  std::size_t i = 0;
  for (; i + 3 <= bytes.size(); i += 3)
    digits_of(byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2), 4);
  if (i + 2 == bytes.size()) digits_of(byte(i) << 16 | byte(i + 1) << 8, 3);
  if (i + 1 == bytes.size()) digits_of(byte(i) << 16, 2);
}

std::optional<std::string> decode_base64(std::string_view text) {
  text = without_padding(text);
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  unsigned bits = 0, held = 0;
  for (const char c : text) {
    const int value = value_of(c);
    if (value == kSpace) continue;
    if (value < 0) return std::nullopt;
    held = (held << 6 | unsigned(value)) & 0xffff;
    bits += 6;
    if (bits >= 8) bytes += char(held >> (bits -= 8) & 0xff);
  }
  if (bits == 6) return std::nullopt;  // of a digit that is part of no byte
  return bytes;
}

std::optional<std::size_t> foreign_in_base64(std::string_view text) {
  text = without_padding(text);
  for (std::size_t i = 0; i < text.size(); ++i)
    if (value_of(text[i]) == kForeign) return i;
  return std::nullopt;
}

}  // namespace braid
