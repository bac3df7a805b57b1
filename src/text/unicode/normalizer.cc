#include "text/unicode/normalizer.h"

#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "text/unicode/charsmap.h"
#include "text/unicode/pattern.h"
#include "text/unicode/unicode.h"
#include "text/vocabulary/byte_level.h"

namespace braid::text {
namespace {

using unicode::Form;

Normalizer in_form(Form form) {
  return [form](TextPiece& piece) { piece.text = unicode::normalized(piece.text, form); };
}

// Keeps what `map` returns for each character; 0 drops it.
template <class Map>
Normalizer mapped(Map map) {
  return [map](TextPiece& piece) {
    std::string out;
    for (std::size_t at = 0; at < piece.text.size();) {
      const auto c = decode_utf8(piece.text, at);
      if (const auto code = map(c.code)) {
        append_utf8(out, *code);
      } else if (out.empty()) {
        piece.at_start = false;  // the reference counts from what is left
      }
      at += c.size;
    }
    piece.text = std::move(out);
  };
}

std::optional<char32_t> without_marks(char32_t c) {
  return unicode::is_mark(c) ? std::nullopt : std::optional(c);
}

// SentencePiece's `nmt` rules: control characters are removed, unusual spaces become spaces.
std::optional<char32_t> nmt(char32_t c) {
  const bool is_control = (c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) ||
                          c == 0x7F || c == 0x8F || c == 0x9F;
  if (is_control) return {};
  const bool is_space = c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                        (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                        c == 0xFEFF || c == 0xFFFD;
  return is_space ? U' ' : c;
}

Normalizer read_strip(const JsonObject& json) {
  const bool left = json.flag_or("strip_left", true);
  const bool right = json.flag_or("strip_right", true);
  return [left, right](TextPiece& piece) {
    std::string_view text = piece.text;
    while (right && !text.empty()) {
      const auto c = unicode::decode_before(text, text.size());
      if (!unicode::is_whitespace(c.code)) break;
      text.remove_suffix(c.size);
    }
    while (left && !text.empty()) {
      const auto c = decode_utf8(text, 0);
      if (!unicode::is_whitespace(c.code)) break;
      text.remove_prefix(c.size);
      piece.at_start = false;
    }
    piece.text = std::string(text);
  };
}

Normalizer read_replace(const JsonObject& json) {
  const auto find = read_pattern(json);
  return [find, content = json.string("content")](TextPiece& piece) {
    std::string out;
    for (const auto& span : find(piece.text)) {
      const auto text = std::string_view(piece.text).substr(span.begin, span.end - span.begin);
      out += span.is_match ? content : text;
      // A replacement takes the position of the last character it replaces.
      if (span.begin == 0 && span.is_match && !text.empty())
        piece.at_start =
            piece.at_start && !content.empty() && decode_utf8(text, 0).size == text.size();
    }
    piece.text = std::move(out);
  };
}

Normalizer read_prepend(const JsonObject& json) {
  return [prefix = json.string("prepend")](TextPiece& piece) {
    if (!piece.text.empty()) piece.text.insert(0, prefix);
  };
}

Normalizer read_normalizers(const JsonObject& json) {
  const auto& list = json.at("normalizers");
  require(list.is_array(), json.source(), ": 'normalizers' should be a list, it is ",
          list.type_name());
  std::vector<Normalizer> steps;
  for (const auto& step : list) steps.push_back(read_normalizer(step, json.source()));
  return [steps](TextPiece& piece) {
    for (const auto& step : steps)
      if (step) step(piece);
  };
}

Normalizer read_precompiled(const JsonObject& json) {
  const auto text = json.string("precompiled_charsmap");
  require(text.size() % 4 == 0, json.source(), " holds base64 of ", text.size(),
          " characters, a multiple of 4 was expected");
  const auto bytes = decode_base64(text);
  require(bytes.has_value(), json.source(), " holds base64 with a character that does not belong");
  return charsmap_normalizer(*bytes, json.source());
}

void lower(TextPiece& piece) { piece.text = unicode::lower_case(piece.text); }
void to_byte_alphabet(TextPiece& piece) { piece.text = in_byte_alphabet(piece.text); }

struct NormalizerType {
  std::string_view name;
  Normalizer (*read)(const JsonObject&);
};

constexpr std::array<NormalizerType, 13> kNormalizers = {{
    {"Sequence", read_normalizers},
    {"NFC", [](const JsonObject&) { return in_form(Form::nfc); }},
    {"NFD", [](const JsonObject&) { return in_form(Form::nfd); }},
    {"NFKC", [](const JsonObject&) { return in_form(Form::nfkc); }},
    {"NFKD", [](const JsonObject&) { return in_form(Form::nfkd); }},
    {"Lowercase", [](const JsonObject&) { return Normalizer(lower); }},
    {"Strip", read_strip},
    {"StripAccents", [](const JsonObject&) { return mapped(without_marks); }},
    {"Replace", read_replace},
    {"Prepend", read_prepend},
    {"Nmt", [](const JsonObject&) { return mapped(nmt); }},
    {"ByteLevel", [](const JsonObject&) { return Normalizer(to_byte_alphabet); }},
    {"Precompiled", read_precompiled},
}};

}  // namespace

Normalizer read_normalizer(const nlohmann::json& json, const std::string& source) {
  if (json.is_null()) return {};
  const JsonObject object(json, source);
  const auto type = object.string("type");
  for (const auto& known : kNormalizers)
    if (type == known.name) return known.read(object);
  throw InputError(
      text_of(source, " asks for the normalizer '", type, "', which is not supported"));
}

Normalizer charsmap_normalizer(std::string_view charsmap, const std::string& source) {
  if (charsmap.empty()) return {};
  const auto map = std::make_shared<const Charsmap>(charsmap, source);
  return [map](TextPiece& piece) { piece.text = map->apply(piece.text); };
}

}  // namespace braid::text
