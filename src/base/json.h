// JSON as users write it: every error names the file and the key. Wraps nlohmann-json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

using Json = nlohmann::json;

constexpr std::size_t kMaxJsonDepth = 100;  // levels: readers recurse
constexpr std::size_t kAnyNumberOfValues = SIZE_MAX;

// Parses `text`; `source` names it in errors. Refuses duplicate keys, invalid UTF-8, nesting
// deeper than kMaxJsonDepth and more than `most_values` values, lists and objects among them: a
// value of three characters takes a hundred bytes. Throws InputError.
Json parse_json(std::string_view text, const std::string& source,
                std::size_t most_values = kAnyNumberOfValues);

// The same of a file that Python wrote, whose numbers may be NaN, Infinity and -Infinity. Fields of
// such values are refused where they are read.
Json parse_python_json(std::string_view text, const std::string& source);

// The text of a value, for errors; of numbers that are not finite, Python's words.
std::string json_text(const Json& value);

// A value on one line; bytes that are not UTF-8 become U+FFFD.
std::string json_line(const Json& value);

// Typed reading of one object's fields. `source` names the file in errors.
class JsonObject {
 public:
  // Throws InputError unless `object` is one; it must outlive this.
  JsonObject(const Json& object, std::string source);

  bool has(std::string_view key) const;      // present and not null
  bool is_null(std::string_view key) const;  // None to Python's classes, and not their default
  // Each throws InputError if the value has another type or is out of range.
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high) const;
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise, std::int64_t low,
                          std::int64_t high) const;
  double number_or(std::string_view key, double otherwise) const;
  bool flag_or(std::string_view key, bool otherwise) const;
  // A flag that Python's class sets: it is set where it is absent, but a null clears it.
  bool is_set(std::string_view key) const;
  std::string string(std::string_view key) const;
  // diffusers' field `_class_name`: a class, or a list whose last item is one.
  std::string class_name_or(std::string_view otherwise) const;
  // Throws InputError if that field is there and names another class than `expected`.
  void check_class(std::string_view expected) const;
  std::string string_or(std::string_view key, std::string_view otherwise) const;
  std::vector<std::int64_t> integers_or(std::string_view key, std::vector<std::int64_t> otherwise,
                                        std::int64_t low, std::int64_t high) const;
  std::vector<std::string> strings_or(std::string_view key,
                                      std::vector<std::string> otherwise) const;
  const Json& at(std::string_view key) const;  // throws InputError when absent
  const Json& json() const { return *object_; }
  const std::string& source() const { return source_; }

 private:
  friend JsonObject read_json_object(const std::filesystem::path& path);

  const Json* object_;
  std::string source_;
  std::shared_ptr<const Json> owned_ = nullptr;
};

// Reads and parses a file (at most 256 MiB), as Python does.
Json read_json(const std::filesystem::path& path);

// The object in a file; it owns its JSON.
JsonObject read_json_object(const std::filesystem::path& path);

}  // namespace braid
