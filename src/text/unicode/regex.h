// Oniguruma, the reference's engine, with its Unicode data raised to the reference's version.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct re_pattern_buffer;

namespace braid::text {

struct Match {
  std::size_t begin, end;  // bytes
};

// Immutable: any number of threads may search with the same Regex.
class Regex {
 public:
  // Throws InputError naming `source` and the pattern.
  Regex(std::string_view pattern, const std::string& source);

  // All matches from left to right, without overlaps. An empty match directly after another one
  // does not count. Throws InputError if backtracking explodes.
  std::vector<Match> find_all(std::string_view text) const;

 private:
  std::string pattern_;
  std::shared_ptr<const re_pattern_buffer> compiled_;
};

// `pattern` with \p{L}, \p{N}, \w and the like extended by what newer Unicode versions assigned. \b
// and negations outside of classes (\W, \P{L}) stay unchanged: no tokenizer uses them.
std::string with_later_characters(std::string_view pattern);

}  // namespace braid::text
