// The fields of a client's JSON object or form: each is read by name, and fields nobody asked for
// are refused, or warned of. Every complaint is an ApiError with the name as its param.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "serve/body/form_fields.h"

namespace braid::serve {

// What becomes of fields that nobody asks for.
enum class UnknownFields { kRefused, kWarnedOf };

class Fields {
 public:
  // Throws ApiError if `body` is not a JSON object, repeats a key, nests deeper than 32 or has more
  // than 100,000 values.
  explicit Fields(std::string_view body, UnknownFields unknown = UnknownFields::kRefused);
  // Text in a form is parsed as a number or boolean when one is asked for, also as Python's `True`
  // and `False`. Throws what read_form_fields() does.
  explicit Fields(const std::vector<Part>& form, UnknownFields unknown = UnknownFields::kRefused);

  bool has(const std::string& name);  // present and not null; throws ApiError if it is a file
  // The value of a field with several spellings; nullopt if none is present. Throws ApiError naming
  // both if two have different values.
  std::optional<std::int64_t> integer(std::initializer_list<const char*> names, std::int64_t low,
                                      std::int64_t high);
  std::optional<double> number(std::initializer_list<const char*> names);
  // A number or a list of numbers; empty if absent.
  std::vector<double> numbers(const std::string& name);
  std::optional<bool> flag(const std::string& name);
  // The text has at most `most` characters.
  std::optional<std::string> text(const std::string& name, std::size_t most);
  // 0 to 2^64-1, as a number or as decimal digits in a string; nullopt if absent or -1.
  std::optional<std::uint64_t> seed();
  // One of the words, or `otherwise` if absent.
  std::string word(const std::string& name, std::initializer_list<const char*> words,
                   const std::string& otherwise);
  // Files of a form by field name, but for those that nobody chose; as text base64, a data URL, or
  // OpenAI's object with such an `image_url`; or a list of these. Throws ApiError for an empty text
  // or list: another picture would be drawn than the one that was meant.
  std::vector<BroughtFile> files(const std::string& name);
  // The elements of a list, each with its fields, also for a list given as JSON text; empty if
  // absent.
  std::vector<Fields> list(const std::string& name, std::size_t most);
  // Accepts these fields without using them, and warns of those that are there.
  void accept_unused(std::initializer_list<const char*> names);
  void warn(std::string sentence) { warnings_->push_back(std::move(sentence)); }
  std::set<std::string> names() const;  // of what is there
  // Names of what is there and was not asked for, but for files.
  std::vector<std::string> unread() const;
  // Throws ApiError naming a field that was not asked for, or warns of it.
  void finish() const;
  // Sentences for the client, also of the elements of lists.
  const std::vector<std::string>& warnings() const { return *warnings_; }

  const Json& json() const { return *json_; }

 private:
  Fields(std::shared_ptr<Json> json, const Fields& around)
      : json_(std::move(json)),
        is_form_(around.is_form_),
        unknown_(around.unknown_),
        warnings_(around.warnings_) {}
  bool has_text(const std::string& name);
  bool has_files(const std::string& name) const;
  void complain_of_unknown(const std::string& name, const char* more) const;
  void read_scalar(const std::string& name);
  void read_whole(const std::string& name);

  std::shared_ptr<Json> json_;
  std::map<std::string, std::vector<BroughtFile>> files_;  // of a form
  std::set<std::string> known_;
  bool is_form_ = false;
  UnknownFields unknown_;
  std::shared_ptr<std::vector<std::string>> warnings_ =
      std::make_shared<std::vector<std::string>>();
};

// A field as the client sent it.
struct GivenText {
  std::string field, text;
};
// Complains of two fields that say the same thing in different ways.
[[noreturn]] void refuse_contradiction(const GivenText& one, const GivenText& other);

// Decodes base64, or a data URL with it. Throws ApiError naming `param`, and the character that is
// at fault, if it is neither.
std::string bytes_of_base64(std::string_view text, const std::string& param);

// "640x480"; throws ApiError otherwise.
struct Size {
  int width, height;
};
Size size_of(const std::string& text, const std::string& param);

}  // namespace braid::serve
