#include "net/hub/hub_words.h"

#include <algorithm>
#include <ctime>

#include "base/ascii.h"
#include "base/error.h"

namespace braid::net {

void require_inside(const std::string& path, const std::string& repository) {
  const auto refuse = [&] {
    std::string shown;
    for (const char c : path.substr(0, 80)) shown += c < ' ' && c >= 0 ? '?' : c;
    throw InputError(text_of(repository, " has a file named '", shown,
                             "', which would lie outside its folder: nothing was loaded"));
  };
  if (path.empty() || path.size() > 1024) refuse();
  if (std::any_of(path.begin(), path.end(), [](unsigned char c) { return c < ' '; })) refuse();
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    const auto part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") refuse();
    begin = end + 1;
  }
}

std::string percent_encoded(std::string_view path) {
  std::string encoded;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain =
        is_ascii_alphanumeric(c) || std::string_view("-_.~/").find(c) != std::string_view::npos;
    if (is_plain) {
      encoded += c;
    } else {
      encoded += {'%', "0123456789ABCDEF"[byte >> 4], "0123456789ABCDEF"[byte & 15]};
    }
  }
  return encoded;
}

std::optional<std::int64_t> seconds_to_wait(const std::string& retry_after, std::int64_t now) {
  if (retry_after.empty()) return {};
  if (retry_after.size() < 10 && retry_after.find_first_not_of("0123456789") == std::string::npos)
    return std::stoll(retry_after);
  std::tm date{};
  const auto* const end = ::strptime(retry_after.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date);
  if (!end || *end) return {};
  return std::max<std::int64_t>(0, std::int64_t(::timegm(&date)) - now);
}

}  // namespace braid::net
