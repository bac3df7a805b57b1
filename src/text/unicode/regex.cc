#include "text/unicode/regex.h"

#include <oniguruma.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/utf8.h"
#include "text/unicode/unicode.h"
#include "text/unicode/unicode_tables.h"

namespace braid::text {
namespace {

const OnigUChar* bytes_of(std::string_view text) {
  return reinterpret_cast<const OnigUChar*>(text.data());
}

void initialize_once() {
  static const int done = [] {
    OnigEncoding utf8 = ONIG_ENCODING_UTF8;
    return onig_initialize(&utf8, 1);
  }();
  (void)done;
}

std::string message_of(int code, OnigErrorInfo* info) {
  std::array<OnigUChar, ONIG_MAX_ERROR_MESSAGE_LEN> buffer{};
  const int size = info ? onig_error_code_to_str(buffer.data(), code, info)
                        : onig_error_code_to_str(buffer.data(), code);
  return {reinterpret_cast<const char*>(buffer.data()), std::size_t(std::max(size, 0))};
}

// A pattern in the form shown in errors.
std::string shortened(std::string_view pattern) {
  constexpr std::size_t kShown = 80;
  if (pattern.size() <= kShown) return std::string(pattern);
  auto end = kShown;
  while (end > 0 && (pattern[end] & 0xC0) == 0x80) --end;
  return std::string(pattern.substr(0, end)) + "...";
}

// `p{L}` of `\p{L}` -> `L`; empty for anything else, such as a negation.
std::string_view property_at(std::string_view rest) {
  if (!rest.starts_with("p{")) return {};
  const auto close = rest.find('}');
  if (close == rest.npos) return {};
  const auto name = rest.substr(2, close - 2);
  const bool is_category = (name.size() == 1 || name.size() == 2) && name[0] >= 'A';
  return is_category ? name : std::string_view();
}

// The characters missing from `\p{name}`, in the form of a character class.
std::string later_members(std::string_view name) {
  std::string out;
  for (const auto& range : unicode::later_categories()) {
    if (!std::string_view(range.name).starts_with(name)) continue;
    append_utf8(out, range.first);
    out += '-';
    append_utf8(out, range.last);
  }
  return out;
}

// The escape at `rest` (after its backslash): its length, and what to add to it.
struct Escape {
  std::size_t size;
  std::string later;
};

Escape escape_at(std::string_view rest) {
  if (rest.empty()) return {0, ""};
  if (const auto name = property_at(rest); !name.empty())
    return {name.size() + 3, later_members(name)};
  if (rest[0] == 'd') return {1, later_members("Nd")};
  if (rest[0] == 'w')
    return {1, later_members("L") + later_members("M") + later_members("Nd") + later_members("Pc")};
  return {1, ""};
}

class Scratch {
 public:
  explicit Scratch(std::size_t text_size)
      : region_(onig_region_new()), limits_(onig_new_match_param()) {
    // Real patterns backtrack a few times per character.
    onig_initialize_match_param(limits_);
    const auto limit = 10'000 + 16 * static_cast<unsigned long>(text_size);
    onig_set_retry_limit_in_match_of_match_param(limits_, limit);
    onig_set_retry_limit_in_search_of_match_param(limits_, limit);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    onig_region_free(region_, 1);
    onig_free_match_param(limits_);
  }
  OnigRegion* region() const { return region_; }
  OnigMatchParam* limits() const { return limits_; }

 private:
  OnigRegion* region_;
  OnigMatchParam* limits_;
};

}  // namespace

std::string with_later_characters(std::string_view pattern) {
  std::string out;
  int depth = 0;  // of brackets
  for (std::size_t at = 0; at < pattern.size();) {
    if (pattern[at] != '\\') {
      if (pattern[at] == '[') ++depth;
      if (pattern[at] == ']' && depth > 0) --depth;
      out += pattern[at++];
      continue;
    }
    const auto escape = escape_at(pattern.substr(at + 1));
    const auto text = pattern.substr(at, 1 + escape.size);
    if (depth > 0 || escape.later.empty()) {
      out.append(text).append(escape.later);
    } else if (text == "\\w") {
      out.append("(?:\\w|[").append(escape.later).append("])");  // [\w] lacks the superscripts
    } else {
      out.append("[").append(text).append(escape.later).append("]");
    }
    at += text.size();
  }
  return out;
}

Regex::Regex(std::string_view pattern, const std::string& source) : pattern_(pattern) {
  constexpr std::size_t kLongest = 10'000;
  require(pattern.size() <= kLongest, source, " has a regular expression of ", pattern.size(),
          " bytes, at most ", kLongest, " were expected");
  initialize_once();
  const auto widened = with_later_characters(pattern);
  regex_t* compiled = nullptr;
  OnigErrorInfo info{};
  const int code = onig_new(&compiled, bytes_of(widened), bytes_of(widened) + widened.size(),
                            ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, ONIG_SYNTAX_RUBY, &info);
  require(code == ONIG_NORMAL, source, " has the regular expression '", shortened(pattern),
          "', which cannot be read: ", code == ONIG_NORMAL ? "" : message_of(code, &info));
  compiled_ = {compiled, [](regex_t* regex) { onig_free(regex); }};
}

std::vector<Match> Regex::find_all(std::string_view text) const {
  std::vector<Match> found;
  const Scratch scratch(text.size());
  auto* const regex = const_cast<regex_t*>(compiled_.get());  // onig_search only reads it
  const auto* const first = bytes_of(text);
  for (std::size_t at = 0; at <= text.size();) {
    const auto result =
        onig_search_with_param(regex, first, first + text.size(), first + at, first + text.size(),
                               scratch.region(), ONIG_OPTION_NONE, scratch.limits());
    if (result == ONIG_MISMATCH) break;
    require(result >= 0, "the tokenizer's regular expression '", shortened(pattern_),
            "' gives up on this text: ", result >= 0 ? "" : message_of(int(result), nullptr));
    const Match match{std::size_t(scratch.region()->beg[0]), std::size_t(scratch.region()->end[0])};
    at = match.end;
    if (match.begin == match.end && !found.empty() && found.back().end == match.end) {
      at += at < text.size() ? decode_utf8(text, at).size : 1;
      continue;
    }
    found.push_back(match);
  }
  return found;
}

}  // namespace braid::text
