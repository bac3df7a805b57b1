#include "serve/log.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "base/hexadecimal.h"

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

}  // namespace

std::string log_value(const std::string& value) {
  const auto cut = value.substr(0, kLongestValue);
  if (!cut.empty() && std::all_of(cut.begin(), cut.end(), is_plain)) return cut;
  std::string quoted = "\"";
  for (const char c : cut) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      quoted += "\\x" + hex_digits(byte);
    else if (c == '"' || c == '\\')
      quoted.append({'\\', c});
    else
      quoted += c;
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
