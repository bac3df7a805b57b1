// The fields of a client's JSON object or form: each is asked for by name, and what nobody asked
// for is refused. Every complaint is an ApiError with the name as its param.
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

// A file that a client sends along.
struct BroughtFile {
  std::string name;  // at the client; empty where it has none, as in JSON
  std::string bytes;
};

class Fields {
 public:
  // Throws ApiError where `body` is no JSON object, has a key twice or nests deeper than 32.
  explicit Fields(std::string_view body);
  // Texts of a form are read as numbers where these are asked for. `name[]` is a list, and
  // `name[][key]` one of objects.
  explicit Fields(const std::vector<Part>& form);

  bool has(const std::string& name);  // present and not null
  // The first of `names` that is present; nullopt where none is.
  std::optional<std::int64_t> integer(std::initializer_list<const char*> names, std::int64_t low,
                                      std::int64_t high);
  std::optional<double> number(std::initializer_list<const char*> names);
  // Of a number or a list of them; empty where absent.
  std::vector<double> numbers(const std::string& name);
  std::optional<bool> flag(const std::string& name);
  // At most `most` bytes long.
  std::optional<std::string> text(const std::string& name, std::size_t most);
  // 0 to 2^64-1, as a number or as decimal digits in a string; nullopt where absent or -1.
  std::optional<std::uint64_t> seed();
  // One of the words, or `otherwise` where it is absent.
  std::string word(const std::string& name, std::initializer_list<const char*> words,
                   const std::string& otherwise);
  // Files of a form by the name of their field, or base64 in a string or a list of them.
  std::vector<BroughtFile> files(const std::string& name);
  // The elements of a list, each with its fields, or of JSON that is one in a text; empty where
  // absent.
  std::vector<Fields> list(const std::string& name, std::size_t most);
  // A field that is taken and not used.
  void ignore(std::initializer_list<const char*> names);
  // Throws ApiError naming a field that nothing above asked for.
  void finish() const;

  const Json& json() const { return *json_; }

 private:
  explicit Fields(std::shared_ptr<Json> json) : json_(std::move(json)) {}
  void add_text(const std::string& name, std::string_view text);
  void read_scalar(const std::string& name);

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
