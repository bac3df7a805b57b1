#include "app/flags/flag_values.h"

#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/ascii.h"
#include "base/file.h"
#include "pipeline/families/description.h"

namespace braid {
namespace {

// All of `text` as a number; nothing if it is not a number or does not fit the type.
template <class Number>
std::optional<Number> number_of(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  Number value{};
  const auto* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end) return {};
  return value;
}

// The same for decimal numbers of any size: beyond a double's range they count as its largest
// number or as 0.
std::optional<double> real_number(std::string_view text) {
  if (const auto value = number_of<double>(text)) return value;
  constexpr auto kPlain = "+-.eE0123456789";
  if (text.find_first_not_of(kPlain) != text.npos) return {};
  char* end = nullptr;
  const std::string copy(text);
  const double rounded = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end != '\0') return {};
  return std::isinf(rounded) ? DBL_MAX : 0;
}

}  // namespace

std::int64_t whole_number(const std::string& flag, const std::string& text, std::int64_t low,
                          std::int64_t high) {
  const auto value = number_of<std::int64_t>(text);
  require(value && *value >= low && *value <= high, flag, " should be a whole number from ", low,
          " to ", high, ", it is ", in_quotes(text));
  return *value;
}

std::uint64_t seed_number(const std::string& flag, const std::string& text) {
  const auto value = number_of<std::uint64_t>(text);
  require(value.has_value(), flag, " should be a whole number from 0 to ", UINT64_MAX, ", it is ",
          in_quotes(text));
  return *value;
}

double finite_number(const std::string& flag, const std::string& text) {
  const auto value = real_number(text);
  require(value && std::isfinite(*value), flag, " should be a finite number, it is ",
          in_quotes(text));
  // Models compute in float32, so its range is the flag's.
  require(std::abs(*value) <= FLT_MAX, flag, " is too large: it should be at most 3.4e38, it is ",
          in_quotes(text));
  return *value;
}

std::optional<double> number_in(const std::string& text) {
  const auto value = real_number(text);
  return value && std::abs(*value) <= FLT_MAX ? value : std::nullopt;
}

std::vector<double> number_list(const std::string& flag, const std::string& text) {
  std::vector<double> numbers;
  for (const auto& part : split_at_commas(text)) {
    const auto value = real_number(part);
    require(value && std::isfinite(*value), flag,
            " should be a list of numbers separated by commas, as in 1,0.5, it is ",
            in_quotes(text));
    numbers.push_back(finite_number(flag, part));
  }
  return numbers;
}

PictureSize picture_size(const std::string& flag, const std::string& text) {
  const auto x = text.find_first_of("xX");
  const auto side = [&](std::string_view digits) {
    const auto value = number_of<int>(digits);
    return value && *value >= 1 && *value <= kMaxSide ? *value : 0;
  };
  const int width = side(std::string_view(text).substr(0, x));
  const int height = x == text.npos ? 0 : side(std::string_view(text).substr(x + 1));
  require(width > 0 && height > 0, flag,
          " should be WIDTHxHEIGHT in pixels, such as 640x480, each ", "from 1 to ", kMaxSide,
          ", it is ", in_quotes(text));
  return {.width = width, .height = height};
}

NumberedFile numbered_file(const std::string& text) {
  const auto sign = text.rfind('=');
  if (sign == text.npos || is_there(text)) return {.file = text};
  const NumberedFile parts{.file = text.substr(0, sign), .number = text.substr(sign + 1)};
  const bool may_be_meant = real_number(*parts.number) || is_there(parts.file);
  return may_be_meant ? parts : NumberedFile{.file = text};
}

std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  auto parts = split_at(text, ',');
  for (auto& part : parts) part = std::string(trimmed(part));
  return parts;
}

}  // namespace braid
