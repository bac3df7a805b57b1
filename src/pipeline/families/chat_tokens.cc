#include "pipeline/families/chat_tokens.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr int kLength = 64;  // longer than any marker that is split into its letters

// Empty if there is none. Older files hold a list of named templates.
std::string template_of(const fs::path& folder) {
  const auto own = folder / "chat_template.jinja", config = folder / "tokenizer_config.json";
  if (is_there(own)) return read_file(own);
  if (!is_there(config)) return {};
  const auto json = read_json(config);
  const auto found = json.find("chat_template");
  if (found == json.end() || found->is_null()) return {};
  return found->is_string() ? found->get<std::string>() : found->dump();
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

void warn_of_other_template(const fs::path& folder, const ChatTokens& chat, const Warn& warn) {
  const auto text = template_of(folder);
  if (text.empty() || !warn) return;
  for (const auto& said : chat.template_says)
    if (text.find(said) == std::string::npos)
      return warn(text_of("the chat template in ", folder.string(), " does not say ", said,
                          ": it is not the published one, by which prompts are formatted"));
}

}  // namespace braid
