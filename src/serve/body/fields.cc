#include "serve/body/fields.h"

#include <algorithm>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/ascii.h"
#include "base/base64.h"
#include "base/error.h"
#include "base/hexadecimal.h"
#include "base/json.h"
#include "base/utf8.h"
#include "serve/api_error.h"

namespace braid::serve {
namespace {

const std::string kBody = "the request";
constexpr std::size_t kLongestFieldName = 100, kMostWarnings = 100;
constexpr int kMostDepth = 32;
constexpr std::size_t kMostValues = 100'000;  // in a body; 32 MB of `{}` took 1.1 GB
constexpr std::size_t kLongestNumber = 40;    // characters, in forms
constexpr std::size_t kLongestScheme = 32;    // of addresses: "https://"
constexpr std::string_view kDataScheme = "data:", kSpaces = " \t\n\f\r";
constexpr double kLargestWhole = 9007199254740992.0;  // 2^53: exact in a double

// Turns an InputError of base/json into the client's error, naming the field.
template <class Read>
auto naming(const std::string& param, Read read, const char* code = "invalid_value") {
  try {
    return read();
  } catch (const InputError& error) {
    throw ApiError(400, error.what(), code, param);
  }
}

// The parser limits the depth, so the recursion is bounded.
int depth_of(const Json& json) {
  int deepest = 0;
  if (json.is_structured())
    for (const auto& element : json) deepest = std::max(deepest, 1 + depth_of(element));
  return deepest;
}

Json shallow_json(std::string_view text, const std::string& source) {
  auto json = parse_json(text, source, kMostValues);
  require(depth_of(json) <= kMostDepth, source, " nests JSON deeper than ", kMostDepth, " levels");
  return json;
}

// The program's flags follow the same rule: the engine computes in single precision.
double finite_number(const std::string& name, double value) {
  if (std::abs(value) > FLT_MAX)
    refuse(name, text_of("'", name, "' should be a finite number, it is ", value));
  return value;
}

// The text of a URL with its escapes resolved; a % that begins none stays.
std::string percent_decoded(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 &&
                           hex_value(text[i + 2]) >= 0;
    bytes += is_escape ? char(hex_value(text[i + 1]) << 4 | hex_value(text[i + 2])) : text[i];
    if (is_escape) i += 2;
  }
  return bytes;
}

bool is_data_url(std::string_view text) {
  return ascii_lower_case(text.substr(0, kDataScheme.size())) == kDataScheme;
}

// What follows a data URL's head, which says that it is base64 (RFC 2397). Browsers take spaces
// around the word.
std::string base64_of_data_url(std::string_view url, const std::string& param) {
  const auto comma = url.find(',');
  const auto head = trimmed(url.substr(0, comma));
  const auto semicolon = head.rfind(';');
  const bool is_base64 = comma != url.npos && semicolon != head.npos &&
                         ascii_lower_case(trimmed(head.substr(semicolon + 1))) == "base64";
  if (!is_base64)
    refuse(param, "'" + param + "' should be a data URL in base64, as data:image/png;base64,...");
  return percent_decoded(url.substr(comma + 1));
}

// "character 17 is '#'"; counted from 1.
std::string foreign_character(std::string_view base64, std::size_t at) {
  const auto size = decode_utf8(base64, at).size;
  const auto character = base64.substr(at, size);
  const bool is_shown = is_valid_utf8(character) && std::uint8_t(character.front()) > ' ' &&
                        character.front() != '\x7f';
  return text_of("character ", num_characters(base64.substr(0, at)) + 1, " is ",
                 is_shown ? text_of("'", character, "'")
                          : "byte 0x" + hex_digits(std::uint8_t(character.front())));
}

// The base64 of a picture in JSON, from each form that clients give it.
const std::string& encoded_picture(const Json& value, const std::string& name) {
  const auto* text = &value;
  for (const auto* const key : {"image_url", "url"}) {
    if (!text->is_object()) break;
    if (text->contains("file_id"))
      refuse(name,
             "'" + name + "' has a 'file_id': there are no stored files here, send a data URL");
    const auto it = text->find(key);
    if (it != text->end()) text = &*it;
  }
  if (!text->is_string())
    refuse(name, text_of("'", name, "' should be a picture in base64 or an object with a data URL ",
                         "as its 'image_url', it is ", text->type_name()));
  const auto& encoded = text->get_ref<const std::string&>();
  if (encoded.substr(0, kLongestScheme).find("://") != encoded.npos)
    refuse(name, "'" + name + "' should be base64 or a data URL: this server fetches no addresses");
  return encoded;
}

// A value that two spellings of one field may both give.
template <class Value>
struct Spelled {
  std::optional<Value> value = {};
  const char* name = nullptr;

  void add(const char* other_name, const Value& other) {
    if (value && *value != other)
      refuse_contradiction({name, text_of(*value)}, {other_name, text_of(other)});
    if (value) return;
    value = other;
    name = other_name;
  }
};

bool read_decimal(const std::string& text, std::uint64_t& value) {
  const auto* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  return !text.empty() && parsed.ec == std::errc() && parsed.ptr == end;
}

}  // namespace

void refuse_contradiction(const GivenText& one, const GivenText& other) {
  refuse(other.field, text_of("'", one.field, "' and '", other.field,
                              "' should be equal, as both are one field: they are ", one.text,
                              " and ", other.text));
}

std::string bytes_of_base64(std::string_view text, const std::string& param) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  std::string resolved;
  if (is_data_url(text)) text = resolved = base64_of_data_url(text, param);
  auto bytes = decode_base64(text);
  if (bytes) return *std::move(bytes);
  const auto foreign = foreign_in_base64(text);
  refuse(param, "'" + param + "' should be base64: " +
                    (foreign ? foreign_character(text, *foreign)
                             : "it is cut, its last character is part of no byte"));
}

Fields::Fields(std::string_view body, UnknownFields unknown) : unknown_(unknown) {
  const auto read = [&] {
    json_ = std::make_shared<Json>(shallow_json(body, kBody));
    (void)JsonObject(*json_, kBody);
  };
  naming("", read, "invalid_json");
}

Fields::Fields(const std::vector<Part>& form, UnknownFields unknown)
    : is_form_(true), unknown_(unknown) {
  auto fields = read_form_fields(form);
  json_ = std::move(fields.texts);
  files_ = std::move(fields.files);
}

bool Fields::has(const std::string& name) {
  if (has_files(name)) refuse(name, "'" + name + "' should be text, it is a file");
  return has_text(name);
}

bool Fields::has_text(const std::string& name) {
  known_.insert(name);
  return JsonObject(*json_, kBody).has(name);
}

bool Fields::has_files(const std::string& name) const {
  const auto own = files_.find(name);
  return own != files_.end() && !own->second.empty();
}

// Forms contain only text. Python's requests writes booleans with a capital.
void Fields::read_scalar(const std::string& name) {
  if (!is_form_ || !json_->contains(name) || !json_->at(name).is_string()) return;
  const auto& text = json_->at(name).get_ref<const std::string&>();
  if (text.size() > kLongestNumber) return;
  const bool is_word = text == "True" || text == "False";
  const auto value = is_word ? Json(text == "True") : Json::parse(text, nullptr, false);
  if (value.is_number() || value.is_boolean()) (*json_)[name] = value;
}

// 2.0 is a whole number in JSON Schema, and what some languages send for 2.
void Fields::read_whole(const std::string& name) {
  read_scalar(name);
  if (!json_->contains(name) || !json_->at(name).is_number_float()) return;
  const auto value = json_->at(name).get<double>();
  if (std::trunc(value) == value && std::abs(value) < kLargestWhole)
    (*json_)[name] = std::int64_t(value);
}

std::optional<std::int64_t> Fields::integer(std::initializer_list<const char*> names,
                                            std::int64_t low, std::int64_t high) {
  Spelled<std::int64_t> found;
  for (const auto* const name : names) {
    read_whole(name);
    if (!has(name)) continue;
    found.add(name,
              naming(name, [&] { return JsonObject(*json_, kBody).integer(name, low, high); }));
  }
  return found.value;
}

std::optional<double> Fields::number(std::initializer_list<const char*> names) {
  Spelled<double> found;
  for (const auto* const name : names) {
    read_scalar(name);
    if (!has(name)) continue;
    const auto read = naming(name, [&] { return JsonObject(*json_, kBody).number_or(name, 0); });
    found.add(name, finite_number(name, read));
  }
  return found.value;
}

std::vector<double> Fields::numbers(const std::string& name) {
  read_scalar(name);
  if (!has(name)) return {};
  const auto list = json_->at(name).is_array() ? json_->at(name) : Json::array({json_->at(name)});
  std::vector<double> values;
  for (const auto& element : list) {
    const auto* const text = is_form_ ? element.get_ptr<const std::string*>() : nullptr;
    const bool is_long = text && text->size() > kLongestNumber;
    const auto value = text && !is_long ? Json::parse(*text, nullptr, false) : element;
    if (!value.is_number())
      refuse(name, text_of("'", name, "' should be a number or a list of them"));
    values.push_back(finite_number(name, value.get<double>()));
  }
  return values;
}

std::optional<bool> Fields::flag(const std::string& name) {
  read_scalar(name);
  if (!has(name)) return {};
  return naming(name, [&] { return JsonObject(*json_, kBody).flag_or(name, false); });
}

std::optional<std::string> Fields::text(const std::string& name, std::size_t most) {
  if (!has(name)) return {};
  auto value = naming(name, [&] { return JsonObject(*json_, kBody).string(name); });
  if (const auto length = num_characters(value); length > most)
    refuse(name,
           text_of("'", name, "' should have at most ", most, " characters, it has ", length));
  if (value.find('\0') != value.npos) refuse(name, "'" + name + "' should have no NUL character");
  return value;
}

std::optional<std::uint64_t> Fields::seed() {
  read_whole("seed");
  if (!has("seed")) return {};
  const auto& value = json_->at("seed");
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  // The JSON library's == would take 2^64-1 for -1.
  const bool is_signed = value.is_number_integer();
  if (is_signed && value.get<std::int64_t>() == -1) return {};
  if (is_signed && value.get<std::int64_t>() >= 0) return value.get<std::uint64_t>();
  std::uint64_t seed = 0;
  if (value.is_string() && read_decimal(value.get<std::string>(), seed)) return seed;
  refuse("seed", "'seed' should be a whole number between 0 and 2^64-1, or -1 for any, it is " +
                     json_line(value).substr(0, 100));
}

std::string Fields::word(const std::string& name, std::initializer_list<const char*> words,
                         const std::string& otherwise) {
  const auto value = text(name, 1000).value_or(otherwise);
  std::string list;
  for (const auto* const word : words) {
    if (value == word) return value;
    list += (list.empty() ? "" : ", ") + std::string(word);
  }
  refuse(name, text_of("'", name, "' should be one of ", list, ", it is '", value, "'"));
}

std::vector<BroughtFile> Fields::files(const std::string& name) {
  std::vector<BroughtFile> files;
  if (has_files(name)) files = files_.at(name);
  if (!has_text(name)) return files;
  const auto& value = json_->at(name);
  const auto texts = value.is_array() ? value : Json::array({value});
  bool lacks_one = texts.empty();
  for (const auto& one : texts) {
    const auto& text = encoded_picture(one, name);
    lacks_one = lacks_one || text.empty();
    if (!text.empty()) files.push_back({"", bytes_of_base64(text, name)});
  }
  // Another picture would be drawn than the one that was meant.
  if (lacks_one)
    refuse(name,
           "'" + name + "' should be a picture, or left out where there is none: it is empty");
  return files;
}

std::vector<Fields> Fields::list(const std::string& name, std::size_t most) {
  if (!has(name)) return {};
  auto value = json_->at(name);
  if (is_form_ && value.is_string())
    value = naming(
        name, [&] { return shallow_json(value.get<std::string>(), "'" + name + "'"); },
        "invalid_json");
  if (!value.is_array()) refuse(name, text_of("'", name, "' should be a list"));
  if (value.size() > most)
    refuse(name,
           text_of("'", name, "' should have at most ", most, " elements, it has ", value.size()));
  std::vector<Fields> elements;
  for (const auto& element : value) {
    if (!element.is_object()) refuse(name, text_of("'", name, "' should be a list of objects"));
    elements.push_back(Fields(std::make_shared<Json>(element), *this));
  }
  return elements;
}

void Fields::accept_unused(std::initializer_list<const char*> names) {
  for (const auto* const name : names)
    if (has_text(name) || has_files(name))
      warn(text_of("'", name, "' is not used: it means nothing here"));
}

void Fields::complain_of_unknown(const std::string& name, const char* more) const {
  const auto shown = name.substr(0, kLongestFieldName);
  const auto sentence = "there is no field '" + shown + "'" + more;
  if (unknown_ == UnknownFields::kRefused)
    throw ApiError(400, sentence, "unknown_parameter", shown);
  if (warnings_->size() < kMostWarnings) warnings_->push_back(sentence + ": it is not used");
}

std::set<std::string> Fields::names() const {
  std::set<std::string> names;
  for (const auto& [name, value] : json_->items())
    if (!value.is_null()) names.insert(name);
  for (const auto& [name, files] : files_)
    if (!files.empty()) names.insert(name);
  return names;
}

std::vector<std::string> Fields::unread() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : json_->items())
    if (!known_.contains(name) && !value.is_null()) names.push_back(name);
  return names;
}

void Fields::finish() const {
  for (const auto& name : unread()) complain_of_unknown(name, "");
  for (const auto& [name, files] : files_)
    if (!known_.contains(name)) complain_of_unknown(name, " for a file");
}

Size size_of(const std::string& text, const std::string& param) {
  Size size{};
  const auto* const end = text.data() + text.size();
  const auto width = std::from_chars(text.data(), end, size.width);
  const bool has_height = width.ec == std::errc() && width.ptr != end && *width.ptr == 'x';
  const auto height = has_height ? std::from_chars(width.ptr + 1, end, size.height)
                                 : std::from_chars_result{end, std::errc::invalid_argument};
  if (height.ec != std::errc() || height.ptr != end || size.width < 1 || size.height < 1)
    refuse(param, text_of("'", param, "' should be WIDTHxHEIGHT, as 512x512, it is '",
                          text.substr(0, 100), "'"));
  return size;
}

}  // namespace braid::serve
