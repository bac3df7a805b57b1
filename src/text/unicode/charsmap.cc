#include "text/unicode/charsmap.h"

#include <algorithm>

#include "base/error.h"
#include "text/unicode/unicode.h"

namespace braid::text {
namespace {

// A unit of the double array: a label, an offset to its children, and whether one of them is a
// leaf.
struct Unit {
  std::uint32_t bits;
  bool has_leaf() const { return (bits >> 8 & 1) != 0; }
  std::uint32_t value() const { return bits & 0x7FFFFFFF; }
  std::uint32_t label() const { return bits & 0x800000FF; }
  std::uint32_t offset() const { return bits >> 10 << ((bits & 1u << 9) >> 6); }
};

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < 4; ++i)
    out |= std::uint32_t(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return out;
}

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

Charsmap::Charsmap(std::string_view bytes, const std::string& source) {
  require(bytes.size() >= 4, source, " has a character map of ", bytes.size(),
          " bytes, at least 4 were expected");
  const std::size_t size = little_endian(bytes, 0) / 4;
  require(size > 0 && size <= (bytes.size() - 4) / 4, source, " has a character map that declares ",
          size, " units, its ", bytes.size(), " bytes hold ", (bytes.size() - 4) / 4);
  trie_.reserve(size);
  for (std::size_t i = 0; i < size; ++i) trie_.push_back(little_endian(bytes, 4 + 4 * i));
  replacements_ = bytes.substr(4 + 4 * size);
  require(unicode::is_valid_utf8(replacements_), source,
          " has a character map whose replacements are not UTF-8");
}

std::optional<std::string_view> Charsmap::replacement(std::string_view text) const {
  std::size_t at = Unit{trie_[0]}.offset();
  for (const unsigned char byte : text) {
    at ^= byte;
    if (byte == 0 || at >= trie_.size() || Unit{trie_[at]}.label() != byte) return {};
    const Unit unit{trie_[at]};
    at ^= unit.offset();
    if (!unit.has_leaf()) continue;
    if (at >= trie_.size()) return {};
    const std::size_t begin = Unit{trie_[at]}.value();
    const bool is_boundary = begin < replacements_.size() && (replacements_[begin] & 0xC0) != 0x80;
    if (!is_boundary) return {};
    const auto end = std::min(replacements_.find('\0', begin), replacements_.size());
    return std::string_view(replacements_).substr(begin, end - begin);
  }
  return {};
}

std::string Charsmap::apply(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  const auto append = [&](std::string_view part) {
    const auto found = replacement(part);
    out += found ? *found : part;
    return found.has_value();
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto grapheme = text.substr(at, unicode::grapheme_size(text, at));
    at += grapheme.size();
    if (grapheme.size() < 6) {
      if (const auto found = replacement(grapheme)) {
        out += *found;
        continue;
      }
    }
    for (std::size_t i = 0; i < grapheme.size();) {
      const auto size = unicode::decode(grapheme, i).size;
      append(grapheme.substr(i, size));
      i += size;
    }
  }
  return out;
}

std::string decode_base64(std::string_view text, const std::string& source) {
  require(text.size() % 4 == 0, source, " holds base64 of ", text.size(),
          " characters, a multiple of 4 was expected");
  const auto padding = text.ends_with("==") ? 2u : text.ends_with('=') ? 1u : 0u;
  text.remove_suffix(padding);
  std::string out;
  out.reserve(text.size() / 4 * 3 + 3);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int digit = base64_digit(c);
    require(digit >= 0, source, " holds base64 with a character that does not belong");
    bits = bits << 6 | std::uint32_t(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += char(bits >> count & 0xFF);
    }
  }
  return out;
}

}  // namespace braid::text
