#include "base/json.h"

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/foreign_file.h"
#include "base/json_error.h"

namespace braid {

void refuse_json(const std::string& source, const std::exception& found) {
  std::string_view text = found.what();
  const auto end = text.starts_with("[json.exception.") ? text.find("] ") : text.npos;
  if (end != text.npos) text.remove_prefix(end + 2);
  throw InputError(text_of(source, " is not valid JSON: ", text));
}

namespace {

bool is_of_word(char c) {
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return is_letter || (c >= '0' && c <= '9') || c == '.' || c == '+' || c == '-';
}

// Python's words for numbers that JSON does not have. The wrapped reader sees a mark in their
// place, itself a number, and meets the marks in the order of their values.
class NotFinite {
 public:
  explicit NotFinite(std::string_view text);

  const std::string& marked() const { return marked_; }

  // The reader asks for each number as it is written, in the order of the text. It asks for more
  // than there are where it is about to refuse what follows a number: "1e+00x".
  std::optional<double> next_value(std::string_view written) {
    if (written != kMark || next_ == values_.size()) return {};
    return values_[next_++];
  }

 private:
  static constexpr std::string_view kMark = "1e+00";
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  struct Word {
    std::string_view name;
    double value;
  };
  // The text may have the mark as a number of its own.
  static constexpr std::array kWords = {Word{"NaN", std::numeric_limits<double>::quiet_NaN()},
                                        Word{"Infinity", kInfinity}, Word{"-Infinity", -kInfinity},
                                        Word{kMark, 1}};

  static const Word* word_at(std::string_view text, std::size_t at);

  std::string marked_;
  std::vector<double> values_;  // of the marks
  std::size_t next_ = 0;
};

const NotFinite::Word* NotFinite::word_at(std::string_view text, std::size_t at) {
  if (at > 0 && is_of_word(text[at - 1])) return nullptr;
  for (const auto& word : kWords) {
    const auto end = at + word.name.size();
    const bool is_whole = end >= text.size() || !is_of_word(text[end]);
    if (is_whole && text.substr(at).starts_with(word.name)) return &word;
  }
  return nullptr;
}

NotFinite::NotFinite(std::string_view text) {
  bool is_in_string = false;
  for (std::size_t at = 0; at < text.size();) {
    if (const auto* const word = is_in_string ? nullptr : word_at(text, at)) {
      marked_ += kMark;
      values_.push_back(word->value);
      at += word->name.size();
      continue;
    }
    const bool is_escape = is_in_string && text[at] == '\\' && at + 1 < text.size();
    if (text[at] == '"') is_in_string = !is_in_string;
    marked_ += text.substr(at, is_escape ? 2 : 1);
    at += is_escape ? 2 : 1;
  }
}

// Builds the value that nlohmann's reader reports piece by piece, and rejects what its own parser
// would silently accept: duplicate keys, unbounded nesting and too many values. (Its parser with a
// callback takes quadratic time in an object's keys: each end of a member looks through all
// members.)
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(const std::string& source, NotFinite* marks, std::size_t most_values)
      : source_(source), marks_(marks), most_values_(most_values) {}

  Json built;

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& as_written) override {
    const auto not_finite = marks_ ? marks_->next_value(as_written) : std::nullopt;
    return add(not_finite.value_or(value));
  }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // not in text
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    const auto [member, is_new] = open_.back()->get_ref<Json::object_t&>().try_emplace(name);
    require(is_new, source_, " has the key '", name, "' twice");
    member_ = &member->second;
    return true;
  }

  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::json::exception& error) override {
    refuse_json(source_, error);
  }

 private:
  // Where a value belongs: the root, the end of an array, or the member just named.
  Json& place() {
    require(open_.size() <= kMaxJsonDepth, source_, " nests JSON deeper than ", kMaxJsonDepth,
            " levels");
    require(num_values_ < most_values_, source_, " should have at most ", most_values_,
            " JSON values, it has more");
    ++num_values_;
    if (open_.empty()) return built;
    return open_.back()->is_array() ? open_.back()->emplace_back() : *member_;
  }
  bool add(Json value) {
    place() = std::move(value);
    return true;
  }
  bool open(Json value) {
    auto& opened = place();
    opened = std::move(value);
    open_.push_back(&opened);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& source_;
  NotFinite* marks_;         // may be nullptr
  std::vector<Json*> open_;  // outermost first; only the innermost grows, so none moves
  Json* member_ = nullptr;
  std::size_t num_values_ = 0, most_values_;
};

// Larger unsigned numbers would become negative ones.
bool is_within(const Json& integer, std::int64_t low, std::int64_t high) {
  if (integer.is_number_unsigned() && integer.get<std::uint64_t>() > INT64_MAX) return false;
  const auto value = integer.get<std::int64_t>();
  return value >= low && value <= high;
}

// To nlohmann's reader a zero byte is the end.
Json parsed(std::string_view text, const std::string& source, NotFinite* marks,
            std::size_t most_values) {
  require(text.find('\0') == text.npos, source, " is not valid JSON: it has a byte of value zero");
  Builder builder(source, marks, most_values);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return std::move(builder.built);
}

}  // namespace

std::string json_text(const Json& value) {
  if (!value.is_number_float() || std::isfinite(value.get<double>())) return value.dump();
  const auto number = value.get<double>();
  return std::isnan(number) ? "NaN" : number < 0 ? "-Infinity" : "Infinity";
}

std::string json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json parse_json(std::string_view text, const std::string& source, std::size_t most_values) {
  return parsed(text, source, nullptr, most_values);
}

Json parse_python_json(std::string_view text, const std::string& source) {
  if (text.find("NaN") == text.npos && text.find("Infinity") == text.npos)
    return parse_json(text, source);
  NotFinite marks(text);
  return parsed(marks.marked(), source, &marks, kAnyNumberOfValues);
}

// A page or message that was saved in place of the file says so itself.
Json read_json(const std::filesystem::path& path) {
  const auto bytes = read_file(path);
  std::string_view text = bytes;
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // Windows' editors begin with it
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const auto first = text.find_first_not_of(" \t\r\n");
  const bool may_be_json =
      first != text.npos && std::string_view("{[\"").find(text[first]) != std::string_view::npos;
  const auto foreign = may_be_json ? "" : foreign_format(std::as_bytes(std::span(text)));
  require(foreign.empty(), path.string(), " should hold JSON, it ", foreign);
  return parse_python_json(text, path.string());
}

JsonObject read_json_object(const std::filesystem::path& path) {
  auto json = std::make_shared<const Json>(read_json(path));
  JsonObject object(*json, path.string());
  object.owned_ = std::move(json);
  return object;
}

JsonObject::JsonObject(const Json& object, std::string source)
    : object_(&object), source_(std::move(source)) {
  require(object.is_object(), source_, " should hold a JSON object, it holds ", object.type_name());
}

bool JsonObject::has(std::string_view key) const {
  const auto it = object_->find(std::string(key));
  return it != object_->end() && !it->is_null();
}

bool JsonObject::is_null(std::string_view key) const {
  const auto it = object_->find(std::string(key));
  return it != object_->end() && it->is_null();
}

const Json& JsonObject::at(std::string_view key) const {
  require(has(key), source_, " has no '", key, "'");
  return object_->at(std::string(key));
}

std::int64_t JsonObject::integer(std::string_view key, std::int64_t low, std::int64_t high) const {
  const auto& value = at(key);
  require(value.is_number_integer(), source_, ": '", key, "' should be a whole number, it is ",
          json_text(value));
  const auto wanted =
      low == high ? text_of("be ", low) : text_of("lie between ", low, " and ", high);
  require(is_within(value, low, high), source_, ": '", key, "' should ", wanted, ", it is ",
          json_text(value));
  return value.get<std::int64_t>();
}

std::int64_t JsonObject::integer_or(std::string_view key, std::int64_t otherwise, std::int64_t low,
                                    std::int64_t high) const {
  return has(key) ? integer(key, low, high) : otherwise;
}

double JsonObject::number_or(std::string_view key, double otherwise) const {
  if (!has(key)) return otherwise;
  const auto& value = at(key);
  require(value.is_number() && std::isfinite(value.get<double>()), source_, ": '", key,
          "' should be a number, it is ", json_text(value));
  return value.get<double>();
}

bool JsonObject::flag_or(std::string_view key, bool otherwise) const {
  if (!has(key)) return otherwise;
  const auto& value = at(key);
  require(value.is_boolean(), source_, ": '", key, "' should be true or false, it is ",
          json_text(value));
  return value.get<bool>();
}

bool JsonObject::is_set(std::string_view key) const { return flag_or(key, !is_null(key)); }

std::string JsonObject::string(std::string_view key) const {
  const auto& value = at(key);
  require(value.is_string(), source_, ": '", key, "' should be a string, it is ", json_text(value));
  return value.get<std::string>();
}

std::string JsonObject::class_name_or(std::string_view otherwise) const {
  const std::string key = "_class_name";
  if (!has(key)) return std::string(otherwise);
  const auto& value = at(key);
  const auto& name = value.is_array() && !value.empty() ? value.back() : value;
  require(name.is_string(), source_, ": '", key, "' should name a class, it is ", json_text(value));
  return name.get<std::string>();
}

void JsonObject::check_class(std::string_view expected) const {
  const auto name = class_name_or(expected);
  require(name == expected, source_, " should describe a ", expected, ", it describes a ", name);
}

std::string JsonObject::string_or(std::string_view key, std::string_view otherwise) const {
  return has(key) ? string(key) : std::string(otherwise);
}

std::vector<std::int64_t> JsonObject::integers_or(std::string_view key,
                                                  std::vector<std::int64_t> otherwise,
                                                  std::int64_t low, std::int64_t high) const {
  if (!has(key)) return otherwise;
  const auto& value = at(key);
  require(value.is_array(), source_, ": '", key, "' should be a list of whole numbers, it is ",
          json_text(value));
  std::vector<std::int64_t> out;
  for (const auto& item : value) {
    require(item.is_number_integer() && is_within(item, low, high), source_, ": '", key,
            "' should hold whole numbers between ", low, " and ", high, ", one is ",
            json_text(item));
    out.push_back(item.get<std::int64_t>());
  }
  return out;
}

std::vector<std::string> JsonObject::strings_or(std::string_view key,
                                                std::vector<std::string> otherwise) const {
  if (!has(key)) return otherwise;
  const auto& value = at(key);
  require(value.is_array(), source_, ": '", key, "' should be a list of strings, it is ",
          json_text(value));
  std::vector<std::string> out;
  for (const auto& item : value) {
    require(item.is_string(), source_, ": '", key, "' should hold strings, one item is ",
            json_text(item));
    out.push_back(item.get<std::string>());
  }
  return out;
}

}  // namespace braid
