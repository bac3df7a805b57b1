#include "app/words/readable.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/utf8.h"

namespace braid {

std::string decimal(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string readable_count(std::int64_t count) {
  auto digits = std::to_string(count);
  for (auto i = std::int64_t(digits.size()) - 3; i > (count < 0 ? 1 : 0); i -= 3)
    digits.insert(std::size_t(i), ",");
  return digits;
}

std::string readable_seconds(double seconds) { return three_digits(seconds) + " s"; }

std::string readable_wait(double seconds) {
  const auto whole = std::llround(std::max(0.0, seconds));
  const auto two = [](long long value) { return (value < 10 ? "0" : "") + std::to_string(value); };
  const auto minutes = whole / 60 % 60, hours = whole / 3600;
  if (hours == 0) return std::to_string(minutes) + ":" + two(whole % 60);
  return std::to_string(hours) + ":" + two(minutes) + ":" + two(whole % 60);
}

std::string plural(std::int64_t count, const std::string& noun) {
  return readable_count(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string left_aligned(std::string text, std::size_t column) {
  text.resize(std::max(column, text.size()), ' ');
  return text;
}

std::string right_aligned(const std::string& text, std::size_t column) {
  return std::string(text.size() < column ? column - text.size() : 1, ' ') + text;
}

std::string one_line(std::string_view text, std::size_t max_bytes) {
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    const auto character = decode_utf8(text, at);
    const auto bytes = text.substr(at, character.size);
    if (line.size() + bytes.size() > max_bytes) return line + "...";
    const bool is_control =
        character.code < 0x20 || (character.code >= 0x7f && character.code < 0xa0);
    if (is_control) {
      line += ' ';
    } else if (is_valid_utf8(bytes)) {
      line += bytes;
    } else {
      line += '?';
    }
    at += character.size;
  }
  return line;
}

std::string in_quotes(std::string_view text) { return "'" + one_line(text, 60) + "'"; }

}  // namespace braid
