#include "text/special_tokens.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "text/vocabulary/vocabulary.h"

namespace braid::text {
namespace {

constexpr std::array kNames = {"bos_token", "eos_token", "unk_token", "sep_token",
                               "pad_token", "cls_token", "mask_token"};

bool is_standard(const std::string& name) {
  return std::ranges::find(kNames, name) != kNames.end();
}

AddedToken special(std::string content) { return {.content = std::move(content), .special = true}; }

// {"content": ..., "lstrip": ...}. Ordinary tokens are normalized unless stated otherwise.
AddedToken read_token(const Json& json, const std::string& source) {
  if (json.is_string()) return special(json.get<std::string>());
  const JsonObject object(json, source);
  AddedToken token{.content = object.string("content")};
  token.single_word = object.flag_or("single_word", false);
  token.lstrip = object.flag_or("lstrip", false);
  token.rstrip = object.flag_or("rstrip", false);
  token.special = object.flag_or("special", false);
  token.normalized = object.flag_or("normalized", !token.special);
  return token;
}

// A named token is special; that decides whether it is normalized if nothing else does.
AddedToken read_named_token(const Json& json, const std::string& source) {
  auto token = read_token(json, source);
  token.special = true;
  if (!json.is_object() || !json.contains("normalized")) token.normalized = false;
  return token;
}

class Collection {
 public:
  Collection(const TokenFiles& files, const TokenDefaults& defaults) : files_(files) {
    for (const auto& [name, content] : defaults.named) named_[name] = special(content);
    read_named_tokens(files.config, files.folder + "/tokenizer_config.json");
    if (!read_decoder()) {
      read_named_tokens(files.special_map, files.folder + "/special_tokens_map.json");
      read_older_added();
      if (!files.tokenizer_json.is_null()) {
        const auto source = files.folder + "/tokenizer.json";
        for (const auto& token : files.tokenizer_json) {
          const auto id = JsonObject(token, source).integer("id", 0, kLargestTokenId);
          by_id_[id] = read_token(token, source);
        }
      }
    }
    if (!extra_given_) extra_ = defaults.extra;
  }

  SpecialTokens result(const std::vector<AddedToken>& known) {
    SpecialTokens out;
    std::set<std::string> present;
    for (const auto& token : known) present.insert(token.content);
    for (auto& [id, token] : by_id_) {
      if (has_name(token.content)) token.special = true;
      present.insert(token.content);
      out.added.push_back(token);
    }
    for (const auto& name : names_in_order()) {
      const auto& token = named_.at(name);
      out.named[name] = token.content;
      out.special.push_back(special(token.content));
      if (!present.contains(token.content)) out.added.push_back(token);
    }
    for (const auto& token : extra_) {
      out.special.push_back(special(token.content));
      if (!present.contains(token.content)) out.added.push_back(token);
    }
    return out;
  }

 private:
  // "eos_token" and the like, and the lists of extra tokens.
  void read_named_tokens(const Json& json, const std::string& source) {
    if (json.is_null()) return;
    require(json.is_object(), source, " should hold a JSON object, it holds ", json.type_name());
    for (const auto& [name, value] : json.items()) {
      const bool is_token = value.is_string() || value.is_object();
      if (is_standard(name) && value.is_null()) named_.erase(name);
      if (name.ends_with("_token") && is_token) named_[name] = read_named_token(value, source);
    }
    for (const std::string list : {"extra_special_tokens", "additional_special_tokens"}) {
      const auto it = json.find(list);
      const bool is_older = list.starts_with("additional") && extra_given_;
      if (it == json.end() || it->is_null() || it->empty() || is_older) continue;
      read_extra(*it, text_of(source, ": '", list, "'"));
    }
  }

  void read_extra(const Json& json, const std::string& source) {
    require(json.is_array() || json.is_object(), source, " should be a list, it is ",
            json.type_name());
    if (json.is_object()) {
      for (const auto& [name, value] : json.items()) named_[name] = read_named_token(value, source);
      return;
    }
    extra_given_ = true;
    for (const auto& token : json) extra_.push_back(read_token(token, source));
  }

  // "added_tokens_decoder", id -> token: if present, the older files are ignored.
  bool read_decoder() {
    const auto source = files_.folder + "/tokenizer_config.json";
    if (!files_.config.is_object() || !files_.config.contains("added_tokens_decoder")) return false;
    const auto& decoder = files_.config.at("added_tokens_decoder");
    require(decoder.is_object(), source, ": 'added_tokens_decoder' should be an object, it is ",
            decoder.type_name());
    for (const auto& [id, token] : decoder.items()) {
      const bool is_id = !id.empty() && id.size() < 10 &&
                         std::ranges::all_of(id, [](char c) { return c >= '0' && c <= '9'; });
      require(is_id, source, ": 'added_tokens_decoder' has '", id, "', which is not a token's id");
      by_id_[std::stoll(id)] = read_token(token, source);
    }
    return true;
  }

  void read_older_added() {
    if (files_.added.is_null()) return;
    const JsonObject object(files_.added, files_.folder + "/added_tokens.json");
    for (const auto& [content, id] : files_.added.items()) {
      const bool is_special = has_name(content) || is_extra(content);
      by_id_[object.integer(content, 0, kLargestTokenId)] = {
          .content = content, .normalized = !is_special, .special = is_special};
    }
  }

  bool has_name(const std::string& content) const {
    return std::ranges::any_of(named_,
                               [&](const auto& entry) { return entry.second.content == content; });
  }

  bool is_extra(const std::string& content) const {
    return std::ranges::any_of(extra_, [&](const auto& t) { return t.content == content; });
  }

  std::vector<std::string> names_in_order() const {
    std::vector<std::string> out;
    for (const char* name : kNames)
      if (named_.contains(name)) out.push_back(name);
    for (const auto& [name, token] : named_)
      if (!is_standard(name)) out.push_back(name);
    return out;
  }

  const TokenFiles& files_;
  std::map<std::string, AddedToken> named_;
  std::map<std::int64_t, AddedToken> by_id_;
  std::vector<AddedToken> extra_;
  bool extra_given_ = false;
};

}  // namespace

std::optional<std::string> SpecialTokens::find(const std::string& name) const {
  const auto it = named.find(name);
  return it == named.end() ? std::nullopt : std::optional(it->second);
}

SpecialTokens collect_special_tokens(const TokenFiles& files, const TokenDefaults& defaults,
                                     const std::vector<AddedToken>& known) {
  return Collection(files, defaults).result(known);
}

std::vector<AddedToken> read_added_tokens(const Json& list, const std::string& source) {
  if (list.is_null()) return {};
  require(list.is_array(), source, ": 'added_tokens' should be a list, it is ", list.type_name());
  std::vector<AddedToken> out;
  for (const auto& token : list) {
    JsonObject(token, source).integer("id", 0, kLargestTokenId);
    out.push_back(read_token(token, source));
  }
  return out;
}

}  // namespace braid::text
