#include "text/unicode/pattern.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/unicode/regex.h"

namespace braid::text {
namespace {

std::vector<Match> occurrences(std::string_view text, std::string_view wanted) {
  std::vector<Match> out;
  for (auto at = text.find(wanted); at != text.npos; at = text.find(wanted, at + wanted.size()))
    out.push_back({at, at + wanted.size()});
  return out;
}

}  // namespace

Find read_pattern(const JsonObject& owner) {
  const JsonObject pattern(owner.at("pattern"), owner.source());
  if (pattern.has("String")) {
    const auto wanted = pattern.string("String");
    require(!wanted.empty(), owner.source(), " has an empty pattern");
    return [wanted](std::string_view text) { return spans_of(text, occurrences(text, wanted)); };
  }
  const Regex regex(pattern.string("Regex"), owner.source());
  return [regex](std::string_view text) { return spans_of(text, regex.find_all(text)); };
}

}  // namespace braid::text
