#include "text/unicode/charsmap.h"

#include <algorithm>

#include "base/byte_order.h"
#include "base/error.h"
#include "base/utf8.h"
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

std::uint32_t unit_at(std::string_view bytes, std::size_t at) {
  return std::uint32_t(little_endian(bytes.data() + at, 4));
}

}  // namespace

Charsmap::Charsmap(std::string_view bytes, const std::string& source) {
  require(bytes.size() >= 4, source, " has a character map of ", bytes.size(),
          " bytes, at least 4 were expected");
  const std::size_t size = unit_at(bytes, 0) / 4;
  require(size > 0 && size <= (bytes.size() - 4) / 4, source, " has a character map that declares ",
          size, " units, its ", bytes.size(), " bytes hold ", (bytes.size() - 4) / 4);
  trie_.reserve(size);
  for (std::size_t i = 0; i < size; ++i) trie_.push_back(unit_at(bytes, 4 + 4 * i));
  replacements_ = bytes.substr(4 + 4 * size);
  require(is_valid_utf8(replacements_), source,
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
      const auto size = decode_utf8(grapheme, i).size;
      append(grapheme.substr(i, size));
      i += size;
    }
  }
  return out;
}

}  // namespace braid::text
