#include "pipeline/families/chat_tokens.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/request_error.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr int kLength = 64;  // longer than any marker that is split into its letters

// Older files hold a list of named templates, of which the default one is followed.
std::string template_in(const Json& field) {
  if (field.is_null()) return {};
  if (field.is_string()) return field.get<std::string>();
  if (field.is_array())
    for (const auto& named : field)
      if (named.is_object() && named.value("name", Json()) == "default" &&
          named.contains("template") && named["template"].is_string())
        return named["template"].get<std::string>();
  return field.dump();
}

// Empty if there is none.
std::string template_of(const fs::path& folder) {
  const auto own = folder / "chat_template.jinja";
  if (is_there(own)) return read_file(own);
  for (const auto* const name : {"chat_template.json", "tokenizer_config.json"}) {
    if (!is_there(folder / name)) continue;
    const auto json = read_json(folder / name);
    const auto found = json.find("chat_template");
    if (found != json.end() && !found->is_null()) return template_in(*found);
  }
  return {};
}

bool has_letters(const std::string& text) { return text.find_first_not_of(" \t\r\n") != text.npos; }

// The end of Jinja's {{ }}, {% %} or {# #} that begins at `begin`. Quoted text may hold its mark.
std::size_t end_of_tag(const std::string& text, std::size_t begin) {
  const char kind = text[begin + 1], last = kind == '{' ? '}' : kind;
  char quote = 0;
  for (auto i = begin + 2; i + 1 < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0 && c == '\\')
      ++i;
    else if (quote != 0)
      quote = c == quote ? char(0) : quote;
    else if (kind != '#' && (c == '\'' || c == '"'))
      quote = c;
    else if (c == last && text[i + 1] == '}')
      return i + 2;
  }
  return text.size();
}

// 1 for a statement that begins a block, -1 for one that ends it.
int depth_change(const std::string& statement) {
  static const std::vector<std::string> kBegins = {"if",     "for", "macro",     "call",
                                                   "filter", "raw", "generation"};
  const auto first = statement.find_first_of("abcdefghijklmnopqrstuvwxyz");
  if (first == statement.npos) return 0;
  const auto word = statement.substr(
      first, statement.find_first_not_of("abcdefghijklmnopqrstuvwxyz", first) - first);
  if (word.starts_with("end")) return -1;
  if (word == "set") return statement.find('=') == statement.npos ? 1 : 0;
  return std::find(kBegins.begin(), kBegins.end(), word) != kBegins.end() ? 1 : 0;
}

// Whether a template writes anything outside of its conditions and loops, whatever the messages.
bool always_writes(const std::string& text) {
  int depth = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    auto begin = text.find('{', at);
    while (begin != text.npos && text.find_first_of("{%#", begin + 1) != begin + 1)
      begin = text.find('{', begin + 1);
    if (depth == 0 && has_letters(text.substr(at, begin - at))) return true;
    if (begin == text.npos) return false;
    at = end_of_tag(text, begin);
    if (text[begin + 1] == '{' && depth == 0) return true;
    if (text[begin + 1] == '%') depth += depth_change(text.substr(begin, at - begin));
  }
  return false;
}

}  // namespace

void check_chat_tokens(const Tokenizer& tokenizer, const ChatTokens& chat, const fs::path& folder) {
  const auto length_of = [&](const std::string& text) {
    return tokenizer.encode(text, kLength).length;
  };
  for (const auto& token : chat.tokens)
    require(length_of(token) == length_of("") + 1, folder.string(), ": the tokenizer has no token ",
            token, ", which the chat with the text encoder needs");
}

std::string tokenizer_with_pictures(const fs::path& model) {
  const std::string own = "processor";
  for (const auto* const file : {"tokenizer.json", "vocab.json"})
    if (is_there(model / own / file)) return own;
  return "tokenizer";
}

void check_image_token(const Tokenizer& tokenizer, std::int64_t id, const fs::path& folder) {
  const std::string mark = "<|image_pad|>";
  const auto read = tokenizer.encode(mark, kLength);
  const auto first = read.ids.begin() + read.begin;
  require(std::find(first, first + read.length, id) != first + read.length, folder.string(),
          ": the tokenizer's token ", mark, " should be the text encoder's 'image_token_id', ", id);
}

void check_pads_on_the_right(const Tokenizer& tokenizer, const fs::path& folder) {
  require(tokenizer.encode("", kLength).begin == 0, folder.string(),
          ": 'padding_side' should be right, it is left");
}

void check_begins_with(const Tokenizer& tokenizer, const std::string& first,
                       const fs::path& folder) {
  const auto alone = tokenizer.encode("", kLength), doubled = tokenizer.encode(first, kLength);
  const auto id = [](const Encoding& text, std::int64_t i) {
    return text.ids[std::size_t(text.begin + i)];
  };
  require(alone.length == 1 && doubled.length == 2 && id(doubled, 0) == id(doubled, 1),
          folder.string(), ": the tokenizer should put ", first,
          " before a text and nothing else around it, as the chat's template does");
}

void check_no_video(const std::string& prompt) {
  const std::string mark = "<|video_pad|>";
  require_field("prompt", prompt.find(mark) == prompt.npos,
                "the prompt marks the place of a video, ", mark,
                ", there is none: this model looks at pictures");
}

void warn_of_other_template(const fs::path& folder, const ChatTokens& chat, const Warn& warn) {
  const auto text = template_of(folder);
  if (text.empty() || !warn) return;
  for (const auto& said : chat.template_says)
    if (text.find(said) == std::string::npos)
      return warn(text_of("the chat template in ", folder.string(), " does not say ", said,
                          ": it is not the published one, by which prompts are formatted"));
  if (chat.template_is_of_messages && always_writes(text))
    warn(text_of("the chat template in ", folder.string(), " writes text before or behind all ",
                 "messages: it is not the published one, by which prompts are formatted"));
}

}  // namespace braid
