#include "text/pre_tokenizer.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "text/split.h"
#include "text/unicode/pattern.h"
#include "text/unicode/regex.h"
#include "text/unicode/unicode.h"
#include "text/vocabulary/byte_level.h"

namespace braid::text {
namespace {

// How GPT-2 splits text into words; see encoder.py of its release.
constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// \w of the reference's other engine, which also includes Alphabetic and the joiners.
constexpr std::string_view kWords =
    "[\\w\\p{Alphabetic}\\x{200C}\\x{200D}]+|[^\\w\\p{Alphabetic}\\x{200C}\\x{200D}\\s]+";

Delimiter read_delimiter(const JsonObject& json, std::string_view otherwise) {
  const auto name = json.string_or("behavior", otherwise);
  if (name == "Removed") return Delimiter::removed;
  if (name == "Isolated") return Delimiter::isolated;
  if (name == "MergedWithPrevious") return Delimiter::merged_with_previous;
  if (name == "MergedWithNext") return Delimiter::merged_with_next;
  if (name == "Contiguous") return Delimiter::contiguous;
  throw InputError(
      text_of(json.source(), " asks for the split behavior '", name, "', which is not supported"));
}

PreTokenizer at_characters(bool (*is_match)(char32_t), Delimiter delimiter) {
  return [=](const TextPiece& piece, std::vector<TextPiece>& out) {
    split(piece, spans_of(piece.text, is_match), delimiter, out);
  };
}

PreTokenizer read_split(const JsonObject& json) {
  require(json.has("behavior"), json.source(), " has a Split without a 'behavior'");
  return [find = read_pattern(json), delimiter = read_delimiter(json, ""),
          invert = json.flag_or("invert", false)](const TextPiece& piece,
                                                  std::vector<TextPiece>& out) {
    const auto spans = find(piece.text);
    split(piece, invert ? inverted(spans) : spans, delimiter, out);
  };
}

PreTokenizer read_byte_level(const JsonObject& json) {
  const bool prefix = json.flag_or("add_prefix_space", false);
  const auto words = json.flag_or("use_regex", true)
                         ? std::optional<Regex>(std::in_place, kGpt2, json.source())
                         : std::nullopt;
  return [prefix, words](const TextPiece& given, std::vector<TextPiece>& out) {
    auto piece = given;
    if (prefix && !piece.text.starts_with(' ')) piece.text.insert(0, " ");
    const auto first = out.size();
    if (words) {
      split(piece, spans_of(piece.text, words->find_all(piece.text)), Delimiter::isolated, out);
    } else {
      out.push_back(piece);
    }
    for (auto i = first; i < out.size(); ++i) out[i].text = in_byte_alphabet(out[i].text);
  };
}

enum class PrependScheme { always, first, never };

PrependScheme read_prepend_scheme(const JsonObject& json) {
  const auto scheme = json.string_or("prepend_scheme", "always");
  const bool older_never = !json.flag_or("add_prefix_space", true);
  require(!older_never || !json.has("prepend_scheme") || scheme == "never", json.source(),
          " has a Metaspace whose 'add_prefix_space' contradicts its 'prepend_scheme'");
  if (older_never || scheme == "never") return PrependScheme::never;
  if (scheme == "always") return PrependScheme::always;
  require(scheme == "first", json.source(), " asks for the prepend scheme '", scheme,
          "', which is not supported");
  return PrependScheme::first;
}

// Spaces become `mark`, which is also prepended to the text; each mark starts a piece.
PreTokenizer read_metaspace(const JsonObject& json) {
  const auto mark = json.string("replacement");
  require(!mark.empty() && decode_utf8(mark, 0).size == mark.size(), json.source(),
          " has a Metaspace whose replacement '", mark, "' is not one character");
  const auto prepend = read_prepend_scheme(json);
  const bool splits = json.flag_or("split", true);
  return [=](const TextPiece& given, std::vector<TextPiece>& out) {
    TextPiece piece{.text = "", .at_start = given.at_start};
    for (const char c : given.text) c == ' ' ? piece.text += mark : piece.text += c;
    const bool wanted =
        prepend == PrependScheme::always || (prepend == PrependScheme::first && given.at_start);
    if (wanted && !piece.text.starts_with(mark)) piece.text.insert(0, mark);
    if (!splits) return out.push_back(piece);
    const auto is_mark = [code = decode_utf8(mark, 0).code](char32_t c) { return c == code; };
    split(piece, spans_of(piece.text, is_mark), Delimiter::merged_with_next, out);
  };
}

PreTokenizer read_whitespace(const JsonObject& json) {
  return
      [words = Regex(kWords, json.source())](const TextPiece& piece, std::vector<TextPiece>& out) {
        split(piece, inverted(spans_of(piece.text, words.find_all(piece.text))), Delimiter::removed,
              out);
      };
}

PreTokenizer read_whitespace_split(const JsonObject&) {
  return at_characters(unicode::is_whitespace, Delimiter::removed);
}

PreTokenizer read_digits(const JsonObject& json) {
  const bool individual = json.flag_or("individual_digits", false);
  return at_characters(unicode::is_numeric,
                       individual ? Delimiter::isolated : Delimiter::contiguous);
}

PreTokenizer read_punctuation(const JsonObject& json) {
  return at_characters(unicode::is_punctuation, read_delimiter(json, "Isolated"));
}

PreTokenizer read_pre_tokenizers(const JsonObject& json) {
  const auto& list = json.at("pretokenizers");
  require(list.is_array(), json.source(), ": 'pretokenizers' should be a list, it is ",
          list.type_name());
  std::vector<PreTokenizer> steps;
  for (const auto& step : list) steps.push_back(read_pre_tokenizer(step, json.source()));
  return [steps](const TextPiece& whole, std::vector<TextPiece>& out) {
    std::vector<TextPiece> pieces = {whole};
    for (const auto& step : steps) {
      if (!step) continue;
      std::vector<TextPiece> next;
      for (const auto& piece : pieces) step(piece, next);
      pieces = std::move(next);
    }
    out.insert(out.end(), pieces.begin(), pieces.end());
  };
}

struct PreTokenizerType {
  std::string_view name;
  PreTokenizer (*read)(const JsonObject&);
};

constexpr std::array<PreTokenizerType, 8> kPreTokenizers = {{
    {"Sequence", read_pre_tokenizers},
    {"Split", read_split},
    {"ByteLevel", read_byte_level},
    {"Metaspace", read_metaspace},
    {"Whitespace", read_whitespace},
    {"WhitespaceSplit", read_whitespace_split},
    {"Digits", read_digits},
    {"Punctuation", read_punctuation},
}};

}  // namespace

PreTokenizer read_pre_tokenizer(const nlohmann::json& json, const std::string& source) {
  if (json.is_null()) return {};
  const JsonObject object(json, source);
  const auto type = object.string("type");
  for (const auto& known : kPreTokenizers)
    if (type == known.name) return known.read(object);
  throw InputError(
      text_of(source, " asks for the pre-tokenizer '", type, "', which is not supported"));
}

}  // namespace braid::text
