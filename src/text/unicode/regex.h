// Oniguruma, the engine of the reference, with its Unicode brought to the reference's version.
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

  // All matches from left to right, without overlaps. An empty match right behind another one is
  // none. Throws InputError when backtracking explodes.
  std::vector<Match> find_all(std::string_view text) const;

 private:
  std::string pattern_;
  std::shared_ptr<const re_pattern_buffer> compiled_;
};

// `pattern` with \p{L}, \p{N}, \w and their like extended by what newer Unicode versions assigned.
// \b and negations outside of classes (\W, \P{L}) stay as they are: no tokenizer has them.
std::string with_later_characters(std::string_view pattern);

}  // namespace braid::text
