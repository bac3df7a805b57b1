#include "text/build_tokenizer.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "text/pipeline.h"
#include "text/pre_tokenizer.h"
#include "text/special_tokens.h"
#include "text/tokenizer_kind.h"
#include "text/unicode/normalizer.h"
#include "text/vocabulary/sentencepiece_model.h"

namespace braid::text {
namespace {

constexpr std::int64_t kLargestLength = 1'000'000;  // transformers writes 1e30 for "no limit"

Json parse_if_there(const std::optional<std::string>& text, const std::string& source) {
  return text ? parse_python_json(*text, source) : Json();
}

const Json& member(const Json& object, const char* key) {
  static const Json none;
  const auto it = object.is_object() ? object.find(key) : object.end();
  return it == object.end() ? none : *it;
}

class Builder {
 public:
  explicit Builder(const TokenizerFiles& files)
      : files_(files),
        config_(files.tokenizer_config ? parse_python_json(*files.tokenizer_config,
                                                           files.folder + "/tokenizer_config.json")
                                       : Json::object()),
        config_fields_(config_, files.folder + "/tokenizer_config.json"),
        document_name_(files.folder + "/tokenizer.json"),
        document_(files.tokenizer_json
                      ? read_model_json(*files.tokenizer_json, document_name_, lists_)
                      : Json()) {}

  std::unique_ptr<const Tokenizer> build() {
    if (files_.tokenizer_json) {
      const auto version = JsonObject(document_, document_name_).string_or("version", "1.0");
      require(version == "1.0", document_name_, " has version '", version, "', 1.0 was expected");
    }
    const auto kind = named_kind();
    auto pipeline = std::make_unique<TextPipeline>(kind ? of_kind(*kind) : of_document());
    pipeline->truncate = side("truncation", "truncation_side");
    pipeline->pad = side("padding", "padding_side");
    return std::make_unique<const Tokenizer>(std::move(pipeline));
  }

 private:
  // Nothing: tokenizer.json defines everything.
  std::optional<TokenizerKind> named_kind() const {
    const auto name = config_fields_.string_or("tokenizer_class", "");
    if (const auto kind = kind_of_class(name)) return kind;
    if (files_.tokenizer_json) return {};
    require(name.empty(), files_.folder, " holds a tokenizer of class ", name,
            ", which can only be read from tokenizer.json");
    if (!files_.vocab_json) return TokenizerKind::kT5;
    return files_.vocab_json->find("</w>\"") != std::string::npos ? TokenizerKind::kClip
                                                                  : TokenizerKind::kQwen2;
  }

  TextPipeline of_kind(TokenizerKind kind) {
    auto defaults = token_defaults(kind, config_fields_.integer_or("extra_ids", 100, 0, 10'000));
    if (kind == TokenizerKind::kT5 && !files_.tokenizer_json) return of_sentencepiece(defaults);
    const auto specials = collect(defaults, {});
    TextPipeline out{.model = model_of(kind, specials)};
    const auto normalizer =
        kind == TokenizerKind::kT5 ? charsmap_of_document() : normalizer_of(kind);
    out.normalize = read_normalizer(normalizer, document_name_);
    finish(out, kind, specials);
    return out;
  }

  TextPipeline of_sentencepiece(TokenDefaults& defaults) {
    const auto source = files_.folder + "/spiece.model";
    require(files_.spiece_model.has_value(), files_.folder,
            " holds a T5 tokenizer, but neither tokenizer.json nor spiece.model");
    auto read = read_sentencepiece_model(*files_.spiece_model, source);
    for (auto it = defaults.extra.rbegin(); it != defaults.extra.rend(); ++it)
      read.tokens.push_back({it->content, 0});
    defaults.extra.insert(defaults.extra.begin(), read.added.begin(), read.added.end());
    const auto specials = collect(defaults, {});
    TextPipeline out{.model = Unigram(std::move(read.tokens), {.unk_id = kT5Unk}, source)};
    out.normalize = charsmap_normalizer(read.charsmap, source);
    finish(out, TokenizerKind::kT5, specials);
    return out;
  }

  Model model_of(TokenizerKind kind, const SpecialTokens& specials) {
    if (kind == TokenizerKind::kT5)
      return make_unigram(std::move(lists_), {.unk_id = kT5Unk}, document_name_);
    auto options = bpe_options(kind, specials.find("unk_token"));
    if (files_.tokenizer_json) return make_bpe(std::move(lists_), options, document_name_);
    require(files_.vocab_json && files_.merges_txt, files_.folder,
            " holds a tokenizer without tokenizer.json, and vocab.json or merges.txt is missing");
    return read_bpe_files(*files_.vocab_json, *files_.merges_txt, options, files_.folder);
  }

  // The class's own steps, as far as they do not depend on the model.
  void finish(TextPipeline& out, TokenizerKind kind, const SpecialTokens& specials) const {
    const bool prefix = config_fields_.flag_or("add_prefix_space", false);
    out.pre_tokenize = read_pre_tokenizer(pre_tokenizer_of(kind, prefix), document_name_);
    add_tokens(out, specials.added);
    if (kind == TokenizerKind::kQwen2) add_tokens(out, specials.special);
    out.frame = frame_of(out, kind, specials);
    prepare(out, specials, kind == TokenizerKind::kClip ? 77 : 512);
  }

  Frame frame_of(const TextPipeline& out, TokenizerKind kind, const SpecialTokens& specials) const {
    if (kind == TokenizerKind::kQwen2 && !member(document_, "post_processor").is_null())
      return read_post_processor(member(document_, "post_processor"), document_name_);
    const auto wants = [&](const char* flag) {
      return !files_.tokenizer_json && config_fields_.flag_or(flag, false);
    };
    const bool is_qwen2 = kind == TokenizerKind::kQwen2;
    Frame frame;
    if (kind == TokenizerKind::kClip ||
        (is_qwen2 && wants("add_bos_token") && specials.find("bos_token")))
      frame.before = {named_id(out, specials, "bos_token")};
    if (!is_qwen2 || (wants("add_eos_token") && specials.find("eos_token")))
      frame.after = {named_id(out, specials, "eos_token")};
    return frame;
  }

  TextPipeline of_document() {
    const auto& json = JsonObject(document_, document_name_).at("model");
    TextPipeline out{.model = make_model(std::move(lists_), json, document_name_)};
    out.normalize = read_normalizer(member(document_, "normalizer"), document_name_);
    out.pre_tokenize = read_pre_tokenizer(member(document_, "pre_tokenizer"), document_name_);
    out.frame = read_post_processor(member(document_, "post_processor"), document_name_);
    const auto known = read_added_tokens(member(document_, "added_tokens"), document_name_);
    add_tokens(out, known);
    auto specials = collect({}, known);
    add_tokens(out, specials.added);
    if (!specials.find("pad_token")) specials.named["pad_token"] = padding_token(out);
    prepare(out, specials, member(json, "end_of_word_suffix") == "</w>" ? 77 : 512);
    return out;
  }

  // If no configuration names one: the file's own, else the class's choice.
  std::string padding_token(const TextPipeline& out) const {
    const auto& own = member(member(document_, "padding"), "pad_token");
    if (own.is_string()) return own.get<std::string>();
    for (const char* token : {"<pad>", "<|endoftext|>", "</s>"})
      if (id_of(out, token)) return token;
    throw InputError(
        text_of(document_name_, " has no pad token, and tokenizer_config.json names none"));
  }

  SpecialTokens collect(const TokenDefaults& defaults, const std::vector<AddedToken>& known) const {
    const auto special_map =
        parse_if_there(files_.special_tokens_map, files_.folder + "/special_tokens_map.json");
    const auto added = parse_if_there(files_.added_tokens, files_.folder + "/added_tokens.json");
    const TokenFiles sources{config_, special_map, added, member(document_, "added_tokens"),
                             files_.folder};
    return collect_special_tokens(sources, defaults, known);
  }

  static void add_tokens(TextPipeline& out, const std::vector<AddedToken>& tokens) {
    out.added.add(tokens, vocabulary_of(out.model), size_of(out.model));
  }

  void prepare(TextPipeline& out, const SpecialTokens& specials, std::int64_t usual_length) const {
    out.added.prepare(out.normalize, config_fields_.flag_or("split_special_tokens", false),
                      files_.folder);
    out.pad_id = named_id(out, specials, "pad_token");
    const auto length = config_fields_.number_or("model_max_length", 0);
    const bool is_length = length >= 1 && length <= double(kLargestLength);
    out.model_max_length = is_length ? std::int64_t(length) : usual_length;
  }

  static std::optional<std::int64_t> id_of(const TextPipeline& out, std::string_view token) {
    const auto added = out.added.find(token);
    return added ? added : vocabulary_of(out.model).find(token);
  }

  std::int64_t named_id(const TextPipeline& out, const SpecialTokens& specials,
                        const std::string& name) const {
    const auto token = specials.find(name);
    require(token.has_value(), files_.folder, " holds a tokenizer without a ", name);
    const auto id = id_of(out, *token);
    require(id.has_value(), files_.folder, " names the ", name, " '", *token,
            "', which is not in its vocabulary");
    return *id;
  }

  // T5's class uses only the first character map of the file's normalizer.
  Json charsmap_of_document() const {
    const auto& normalizer = member(document_, "normalizer");
    const auto& list = member(normalizer, "normalizers");
    if (member(normalizer, "type") == "Precompiled") return normalizer;
    if (list.is_array()) {
      for (const auto& step : list)
        if (member(step, "type") == "Precompiled") return step;
    }
    return nullptr;
  }

  Side side(const char* section, const char* setting) const {
    auto name = config_fields_.string_or(setting, "");
    const auto& own = member(member(document_, section), "direction");
    if (name.empty() && own.is_string()) name = own == "Left" ? "left" : "right";
    require(name.empty() || name == "left" || name == "right", config_fields_.source(), ": '",
            setting, "' should be left or right, it is '", name, "'");
    return name == "left" ? Side::left : Side::right;
  }

  static constexpr std::int64_t kT5Unk = 2;

  const TokenizerFiles& files_;
  Json config_;
  JsonObject config_fields_;
  std::string document_name_;
  Lists lists_;  // from tokenizer.json
  Json document_;
};

}  // namespace
}  // namespace braid::text

namespace braid {

std::unique_ptr<const Tokenizer> build_tokenizer(const TokenizerFiles& files) {
  return text::Builder(files).build();
}

}  // namespace braid
