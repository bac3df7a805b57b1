#include "serve/log.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "base/hexadecimal.h"
#include "base/utf8.h"

namespace braid::serve {
namespace {

constexpr std::size_t kLongestValue = 1000;

// "2026-11-22T12:00:00.123Z"
std::string time_text() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = milliseconds / 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const auto end = std::strftime(text.data(), text.size(), "%FT%T", &parts);
  std::snprintf(text.data() + end, text.size() - end, ".%03dZ", int(milliseconds % 1000));
  return text.data();
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_./:+,@[]").find(c) != std::string_view::npos;
}

// Terminals obey control characters, those from U+0080 on too, and guess at bytes that are not
// UTF-8.
bool is_escaped(const Utf8Character& character) {
  const bool is_control =
      character.code < 0x20 || (character.code >= 0x7f && character.code < 0xa0);
  const bool is_no_character = character.code == 0xfffd && character.size == 1;
  return is_control || is_no_character;
}

std::string escaped(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += "\\x" + hex_digits(static_cast<unsigned char>(c));
  return text;
}

}  // namespace

std::string log_value(const std::string& value) {
  const auto cut = value.substr(0, kLongestValue);
  if (!cut.empty() && std::all_of(cut.begin(), cut.end(), is_plain)) return cut;
  std::string quoted = "\"";
  for (std::size_t at = 0; at < value.size() && at < kLongestValue;) {
    const auto character = decode_utf8(value, at);
    const auto bytes = std::string_view(value).substr(at, character.size);
    if (character.code == '"' || character.code == '\\') quoted += '\\';
    quoted += is_escaped(character) ? escaped(bytes) : std::string(bytes);
    at += character.size;
  }
  return quoted + "\"";
}

void Log::operator()(const char* event, std::initializer_list<Field> fields) {
  auto line = "time=" + time_text() + " event=" + event;
  for (const auto& [name, value] : fields)
    if (!value.empty()) line += std::string(" ") + name + "=" + log_value(value);
  const std::scoped_lock lock(mutex_);
  write_(line + "\n");
}

}  // namespace braid::serve
