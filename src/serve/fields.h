// The fields of a client's JSON object: each is asked for by name, and what nobody asked for is
// refused. Every complaint is an ApiError with the name as its param.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/json.h"

namespace braid::serve {

class Fields {
 public:
  // Throws ApiError where `body` is no JSON object, has a key twice or nests deeper than 100.
  explicit Fields(std::string_view body);

  bool has(const std::string& name);  // present and not null
  // The first of `names` that is present; nullopt where none is.
  std::optional<std::int64_t> integer(std::initializer_list<const char*> names, std::int64_t low,
                                      std::int64_t high);
  std::optional<double> number(std::initializer_list<const char*> names);
  std::optional<bool> flag(const std::string& name);
  // At most `most` bytes long.
  std::optional<std::string> text(const std::string& name, std::size_t most);
  // 0 to 2^64-1, as a number or as decimal digits in a string; nullopt where absent or -1.
  std::optional<std::uint64_t> seed();
  // One of the words, or `otherwise` where it is absent.
  std::string word(const std::string& name, std::initializer_list<const char*> words,
                   const std::string& otherwise);
  // A field that is taken and not used.
  void ignore(std::initializer_list<const char*> names);
  // Throws ApiError naming a field that nothing above asked for.
  void finish() const;

  const Json& json() const { return *json_; }

 private:
  std::shared_ptr<const Json> json_;
  std::set<std::string> known_;
};

// "640x480"; throws ApiError otherwise.
struct Size {
  int width, height;
};
Size size_of(const std::string& text, const std::string& param);

}  // namespace braid::serve
