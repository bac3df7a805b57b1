#include "serve/http/http_date.h"

#include <time.h>

#include <array>

namespace braid::serve {
namespace {

constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

}  // namespace

// strftime would use the locale's names.
std::string http_date(std::chrono::system_clock::time_point time) {
  const auto seconds = std::chrono::system_clock::to_time_t(time);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 32> rest{};
  const auto size = std::strftime(rest.data(), rest.size(), " %Y %H:%M:%S GMT", &utc);
  const auto day = std::to_string(utc.tm_mday);
  return std::string(kDays[std::size_t(utc.tm_wday)]) + ", " + (day.size() < 2 ? "0" : "") + day +
         " " + kMonths[std::size_t(utc.tm_mon)] + std::string(rest.data(), size);
}

}  // namespace braid::serve
