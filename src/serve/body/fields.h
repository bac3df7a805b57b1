// The fields of a client's JSON object or form: each is read by name, and fields nobody asked for
// are refused. Every complaint is an ApiError with the name as its param.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "serve/body/multipart.h"

namespace braid::serve {

// A file sent by a client.
struct BroughtFile {
  std::string name;  // the client's; empty if it has none, as in JSON
  std::string bytes;
};

class Fields {
 public:
  // Throws ApiError if `body` is not a JSON object, repeats a key or nests deeper than 32.
  explicit Fields(std::string_view body);
  // Text in a form is parsed as a number when one is asked for. `name[]` is a list, and
  // `name[][key]` a list of objects.
  explicit Fields(const std::vector<Part>& form);

  bool has(const std::string& name);  // present and not null
  // The first of `names` that is present; nullopt if none is.
  std::optional<std::int64_t> integer(std::initializer_list<const char*> names, std::int64_t low,
                                      std::int64_t high);
  std::optional<double> number(std::initializer_list<const char*> names);
  // A number or a list of numbers; empty if absent.
  std::vector<double> numbers(const std::string& name);
  std::optional<bool> flag(const std::string& name);
  // At most `most` bytes.
  std::optional<std::string> text(const std::string& name, std::size_t most);
  // 0 to 2^64-1, as a number or as decimal digits in a string; nullopt if absent or -1.
  std::optional<std::uint64_t> seed();
  // One of the words, or `otherwise` if absent.
  std::string word(const std::string& name, std::initializer_list<const char*> words,
                   const std::string& otherwise);
  // Files of a form by field name, or base64 in a string or a list of strings.
  std::vector<BroughtFile> files(const std::string& name);
  // The elements of a list, each with its fields, also for a list given as JSON text; empty if
  // absent.
  std::vector<Fields> list(const std::string& name, std::size_t most);
  // Accepts these fields without using them.
  void ignore(std::initializer_list<const char*> names);
  // Throws ApiError naming a field that was not asked for.
  void finish() const;

  const Json& json() const { return *json_; }

 private:
  explicit Fields(std::shared_ptr<Json> json) : json_(std::move(json)) {}
  void add_text(const std::string& name, std::string_view text);
  void read_scalar(const std::string& name);
  void read_whole(const std::string& name);

  std::shared_ptr<Json> json_;
  std::map<std::string, std::vector<BroughtFile>> files_;  // of a form
  std::set<std::string> known_;
  bool is_form_ = false;
};

// "640x480"; throws ApiError otherwise.
struct Size {
  int width, height;
};
Size size_of(const std::string& text, const std::string& param);

}  // namespace braid::serve
