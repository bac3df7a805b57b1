#include "text/unicode/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/ascii.h"
#include "text/unicode/unicode_tables.h"

namespace braid::unicode {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

utf8proc_category_t category(char32_t code) { return utf8proc_category(utf8proc_int32_t(code)); }

int combining_class(utf8proc_int32_t code) { return utf8proc_get_property(code)->combining_class; }

int options_of(Form form) {
  const bool compat = form == Form::nfkc || form == Form::nfkd;
  const bool compose = form == Form::nfc || form == Form::nfkc;
  return UTF8PROC_STABLE | (compat ? UTF8PROC_COMPAT : 0) |
         (compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE);
}

void append_decomposed(std::vector<utf8proc_int32_t>& out, char32_t code, int options) {
  constexpr int kLongest = 32;  // U+FDFA decomposes into 18
  const auto size = out.size();
  out.resize(size + kLongest);
  const auto written =
      utf8proc_decompose_char(utf8proc_int32_t(code), out.data() + size, kLongest,
                              utf8proc_option_t(options | UTF8PROC_DECOMPOSE), nullptr);
  if (written >= 0 && written <= kLongest) {
    out.resize(size + std::size_t(written));
  } else {
    out.resize(size);
    out.push_back(utf8proc_int32_t(code));
  }
}

// utf8proc_decompose() bubble-sorts marks, which is quadratic in their number.
void order_marks(std::vector<utf8proc_int32_t>& code_points) {
  const auto is_starter = [](utf8proc_int32_t c) { return combining_class(c) == 0; };
  for (auto it = code_points.begin(); it != code_points.end();) {
    const auto first = std::find_if_not(it, code_points.end(), is_starter);
    it = std::find_if(first, code_points.end(), is_starter);
    std::stable_sort(first, it,
                     [](auto a, auto b) { return combining_class(a) < combining_class(b); });
  }
}

// A stretch without inert characters.
void append_normalized(std::string& out, std::string_view stretch, Form form) {
  const int options = options_of(form);
  std::vector<utf8proc_int32_t> code_points;
  code_points.reserve(stretch.size() + 32);
  for (std::size_t at = 0; at < stretch.size();) {
    const auto c = decode_utf8(stretch, at);
    append_decomposed(code_points, c.code, options);
    at += c.size;
  }
  order_marks(code_points);
  auto size = utf8proc_ssize_t(code_points.size());
  if (form == Form::nfc || form == Form::nfkc)
    size = utf8proc_normalize_utf32(code_points.data(), size, utf8proc_option_t(options));
  for (utf8proc_ssize_t i = 0; i < size; ++i)
    append_utf8(out, char32_t(code_points[std::size_t(i)]));
}

// utf8proc knows the clusters of its own Unicode version; later characters borrow a similar one.
utf8proc_int32_t stand_in(char32_t code) {
  constexpr utf8proc_int32_t kExtender = 0x300, kPrepended = 0x600, kLetter = 'a';
  if (code == 0x113D1) return kPrepended;
  if (code == 0x11A3A) return kLetter;
  return contains(later_extenders(), code) ? kExtender : utf8proc_int32_t(code);
}

}  // namespace

Utf8Character decode_before(std::string_view text, std::size_t end) {
  const auto is_continuation = [&](std::size_t i) {
    return (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
  };
  auto begin = end - 1;
  while (begin > 0 && end - begin < 4 && is_continuation(begin)) --begin;
  const auto c = decode_utf8(text.substr(0, end), begin);
  return c.size == end - begin ? c : Utf8Character{kReplacement, 1};
}

bool is_whitespace(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_numeric(char32_t code) {
  const auto found = category(code);
  return found == UTF8PROC_CATEGORY_ND || found == UTF8PROC_CATEGORY_NL ||
         found == UTF8PROC_CATEGORY_NO || contains(later_numbers(), code);
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) return c > ' ' && c < 0x7F && !is_ascii_alphanumeric(char(c));
  if (c == 0x166D || c == 0x111C9) return true;  // in Unicode 9
  const auto found = category(c);
  return found >= UTF8PROC_CATEGORY_PC && found <= UTF8PROC_CATEGORY_PO &&
         !contains(not_punctuation(), c);
}

bool is_mark(char32_t c) {
  if (c == 0x1CF2 || c == 0x1CF3) return true;  // in Unicode 9
  const auto found = category(c);
  return found >= UTF8PROC_CATEGORY_MN && found <= UTF8PROC_CATEGORY_ME && !contains(inert(), c);
}

std::string normalized(std::string_view text, Form form) {
  const bool is_ascii = std::ranges::all_of(text, [](unsigned char c) { return c < 0x80; });
  if (is_ascii) return std::string(text);
  std::string out;
  std::size_t stretch = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto c = decode_utf8(text, at);
    if (contains(inert(), c.code)) {
      append_normalized(out, text.substr(stretch, at - stretch), form);
      out.append(text.substr(at, c.size));
      stretch = at + c.size;
    }
    at += c.size;
  }
  append_normalized(out, text.substr(stretch), form);
  return out;
}

std::string lower_case(std::string_view text) {
  constexpr char32_t kDottedCapitalI = 0x130, kDotAbove = 0x307;  // the only one to become two
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto c = decode_utf8(text, at);
    const auto shifts = lower_case_shifts();
    const auto shift = std::ranges::lower_bound(shifts, c.code, {}, &Shift::last);
    const bool shifted = shift != shifts.end() && shift->first <= c.code;
    if (shifted) {
      append_utf8(out, char32_t(std::int64_t(c.code) + shift->by));
    } else {
      append_utf8(out, char32_t(utf8proc_tolower(utf8proc_int32_t(c.code))));
    }
    if (c.code == kDottedCapitalI) append_utf8(out, kDotAbove);
    at += c.size;
  }
  return out;
}

std::size_t grapheme_size(std::string_view text, std::size_t begin) {
  auto previous = decode_utf8(text, begin);
  std::size_t at = begin + previous.size;
  utf8proc_int32_t state = 0;
  while (at < text.size()) {
    const auto next = decode_utf8(text, at);
    if (utf8proc_grapheme_break_stateful(stand_in(previous.code), stand_in(next.code), &state))
      break;
    previous = next;
    at += next.size;
  }
  return at - begin;
}

}  // namespace braid::unicode
