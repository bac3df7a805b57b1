#include "net/hub/hub_words.h"

#include <algorithm>
#include <ctime>

#include "base/ascii.h"
#include "base/error.h"

namespace braid::net {
namespace {

std::optional<std::int64_t> whole_seconds(std::string_view text) {
  constexpr std::size_t kMostDigits = 9;
  if (text.empty() || text.size() > kMostDigits) return {};
  if (text.find_first_not_of("0123456789") != text.npos) return {};
  return std::stoll(std::string(text));
}

}  // namespace

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
  if (const auto seconds = whole_seconds(retry_after)) return seconds;
  std::tm date{};
  const auto* const end = ::strptime(retry_after.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date);
  if (!end || *end) return {};
  return std::max<std::int64_t>(0, std::int64_t(::timegm(&date)) - now);
}

std::optional<std::int64_t> seconds_to_reset(std::string_view rate_limit) {
  std::optional<std::int64_t> remaining, reset;
  for (auto parameter : segments_of(segments_of(rate_limit, ',').front(), ';')) {
    parameter = trimmed(parameter);
    if (parameter.starts_with("r=")) remaining = whole_seconds(parameter.substr(2));
    if (parameter.starts_with("t=")) reset = whole_seconds(parameter.substr(2));
  }
  return remaining == 0 && reset ? std::optional(*reset + 1) : std::nullopt;
}

}  // namespace braid::net
