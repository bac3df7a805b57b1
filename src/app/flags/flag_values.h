// Values of flags: text to numbers, with a one-sentence complaint about text that does not fit.
// Everything here throws InputError naming the flag, what it accepts and what it got.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/words/readable.h"
#include "base/error.h"
#include "pipeline/request/limits.h"
#include "pipeline/request/picture_size.h"

namespace braid {

std::int64_t whole_number(const std::string& flag, const std::string& text, std::int64_t low,
                          std::int64_t high);
std::uint64_t seed_number(const std::string& flag, const std::string& text);
double finite_number(const std::string& flag, const std::string& text);
// The same; nothing if it is no such number.
std::optional<double> number_in(const std::string& text);
std::vector<double> number_list(const std::string& flag, const std::string& text);  // "1, 0.5"

PictureSize picture_size(const std::string& flag, const std::string& text);  // "640x480"

// FILE or FILE=NUMBER. The last '=' ends the name, unless a file of the whole name is there, or
// what follows is no number and no file of the name before it is there.
struct NumberedFile {
  std::string file;
  std::optional<std::string> number = std::nullopt;  // as it is written
};
NumberedFile numbered_file(const std::string& text);

// "a,b" -> a, b; "" -> one empty part
std::vector<std::string> split_at(const std::string& text, char separator);
// The same without the spaces around each part, as in "a, b".
std::vector<std::string> split_at_commas(const std::string& text);

template <class Value>
using Choices = std::vector<std::pair<std::string, Value>>;

template <class Value>
Value choice(const std::string& flag, const std::string& text, const Choices<Value>& choices) {
  std::string names;
  for (const auto& [name, value] : choices) {
    if (name == text) return value;
    names += (names.empty() ? "" : ", ") + name;
  }
  throw InputError(text_of(flag, " should be one of ", names, ", it is ", in_quotes(text)));
}

// What a value is called; the first name, where it has several.
template <class Value>
std::string choice_name(const Choices<Value>& choices, Value value) {
  for (const auto& [name, named] : choices)
    if (named == value) return name;
  throw Error("the value of an option has no name");
}

// Makes a FlagReader that stores what `parse` returns for a flag's text in `value`.
template <class Value, class Parse>
auto into(Value& value, Parse parse) {
  return [&value, parse](const std::string& flag, const std::string& text) {
    value = parse(flag, text);
  };
}

template <class Side>
auto picture_size_into(Side& width, Side& height) {
  return [&width, &height](const std::string& flag, const std::string& text) {
    const auto size = picture_size(flag, text);
    width = size.width;
    height = size.height;
  };
}

inline auto whole_from(int low, int high) {
  return [low, high](const std::string& flag, const std::string& text) {
    return int(whole_number(flag, text, low, high));
  };
}

template <class Value>
auto one_of(const Choices<Value>& choices) {
  return [choices](const std::string& flag, const std::string& text) {
    return choice(flag, text, choices);
  };
}

inline std::string plain_text(const std::string&, const std::string& text) { return text; }

}  // namespace braid
