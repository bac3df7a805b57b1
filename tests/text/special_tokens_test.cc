// Precedence when the files disagree. tools/parity found the same in transformers.
#include "text/special_tokens.h"

#include <gmock/gmock.h>

#include "text_testing.h"

namespace braid::text::special_tokens_test {

using namespace testing_text;
using testing::ElementsAre;
using testing::HasSubstr;

struct Given {
  const char* config = "null";
  const char* special_map = "null";
  const char* added = "null";
  const char* tokenizer_json = "null";
  const TokenDefaults* defaults = nullptr;
  std::vector<AddedToken> known = {};
};

SpecialTokens collect(const Given& given) {
  const auto config = nlohmann::json::parse(given.config);
  const auto special_map = nlohmann::json::parse(given.special_map);
  const auto added = nlohmann::json::parse(given.added);
  const auto tokenizer_json = nlohmann::json::parse(given.tokenizer_json);
  const TokenDefaults none;
  return collect_special_tokens({config, special_map, added, tokenizer_json, "d"},
                                given.defaults ? *given.defaults : none, given.known);
}

// Contents with their flags: "<s>:sl" is special and strips to the left.
std::vector<std::string> added(const Given& given) {
  std::vector<std::string> out;
  for (const auto& token : collect(given).added)
    out.push_back(token.content + ":" + (token.special ? "s" : "") + (token.normalized ? "n" : "") +
                  (token.lstrip ? "l" : "") + (token.rstrip ? "r" : "") +
                  (token.single_word ? "w" : ""));
  return out;
}

TEST(SpecialTokens, ComeFromTheClassWhereFilesAreSilent) {
  const TokenDefaults defaults{{{"eos_token", "</s>"}, {"pad_token", "<pad>"}},
                               {{.content = "<x>", .special = true}}};
  EXPECT_THAT(added({.defaults = &defaults}), ElementsAre("</s>:s", "<pad>:s", "<x>:s"));
  const auto tokens =
      collect({.config = R"({"pad_token": "!", "eos_token": null})", .defaults = &defaults});
  EXPECT_EQ(tokens.find("pad_token"), "!");
  EXPECT_EQ(tokens.find("eos_token"), std::nullopt);
}

TEST(SpecialTokens, CarryTheirFlags) {
  EXPECT_THAT(added({.config = R"({"bos_token": {"__type": "AddedToken", "content": "<s>",
                                   "lstrip": true, "normalized": true},
                                   "eos_token": {"content": "</s>",
                                   "rstrip": true}, "unk_token": "<unk>"})"}),
              ElementsAre("<s>:snl", "</s>:sr", "<unk>:s"));
}

TEST(SpecialTokens, AreNamedBeforeExtraOnesFollow) {
  EXPECT_THAT(added({.config = R"({"additional_special_tokens": ["<b>", {"content": "<a>"}],
                                   "image_token": "<i>", "mask_token": "<m>", "add_bos_token": true,
                                   "bos_token": "<s>"})"}),
              ElementsAre("<s>:s", "<m>:s", "<i>:s", "<b>:s", "<a>:n"));
  EXPECT_THAT(added({.config = R"({"extra_special_tokens": {"image_token": "<i>"}})"}),
              ElementsAre("<i>:s"));
  EXPECT_THAT(added({.config = R"({"extra_special_tokens": ["<new>"],
                                   "additional_special_tokens": ["<old>"]})"}),
              ElementsAre("<new>:s"));
}

TEST(SpecialTokens, ComeByIdFromTheDecoderWhichSilencesOlderFiles) {
  EXPECT_THAT(added({.config = R"({"eos_token": "</s>", "added_tokens_decoder": {
                       "10": {"content": "ten", "special": false, "normalized": true},
                       "9": {"content": "</s>", "single_word": true, "special": false}}})",
                     .special_map = R"({"eos_token": "<old>"})",
                     .added = R"({"older": 11})",
                     .tokenizer_json = R"([{"id": 12, "content": "json"}])"}),
              ElementsAre("</s>:snw", "ten:n"));
}

TEST(SpecialTokens, ComeFromOlderFilesWithoutADecoder) {
  EXPECT_THAT(added({.config = R"({"eos_token": "</s>"})",
                     .special_map = R"({"eos_token": {"content": "<e>", "lstrip": true},
                                        "additional_special_tokens": ["<x>"]})",
                     .added = R"({"word": 7, "<x>": 6})",
                     .tokenizer_json = R"([{"id": 5, "content": "json", "special": true}])"}),
              ElementsAre("json:s", "<x>:s", "word:n", "<e>:sl"));
}

TEST(SpecialTokens, AreNotAddedAgain) {
  EXPECT_THAT(added({.config = R"({"eos_token": "</s>", "pad_token": "<p>"})",
                     .known = {{.content = "</s>", .rstrip = true}}}),
              ElementsAre("<p>:s"));
}

TEST(SpecialTokens, AreAllListedAsSpecial) {
  std::vector<std::string> contents;
  for (const auto& token : collect({.config = R"({"eos_token": {"content": "</s>", "lstrip": true},
                                                  "extra_special_tokens": ["<x>"]})"})
                               .special) {
    EXPECT_TRUE(token.special && !token.lstrip && !token.normalized);
    contents.push_back(token.content);
  }
  EXPECT_THAT(contents, ElementsAre("</s>", "<x>"));
}

TEST(SpecialTokens, NameTheFileThatIsNotWellFormed) {
  const auto complaint = [](const Given& given) { return message_of([&] { collect(given); }); };
  EXPECT_THAT(complaint({.config = "[]"}), HasSubstr("d/tokenizer_config.json should hold"));
  EXPECT_THAT(complaint({.config = R"({"eos_token": {}})"}), HasSubstr("has no 'content'"));
  EXPECT_THAT(complaint({.config = R"({"extra_special_tokens": "x"})"}), HasSubstr("a list"));
  EXPECT_THAT(complaint({.config = R"({"extra_special_tokens": [1]})"}), HasSubstr("JSON object"));
  EXPECT_THAT(complaint({.config = R"({"added_tokens_decoder": []})"}), HasSubstr("an object"));
  EXPECT_THAT(complaint({.config = R"({"added_tokens_decoder": {"x1": {"content": "a"}}})"}),
              HasSubstr("'x1', which is not a token's id"));
  EXPECT_THAT(
      complaint({.config = R"({"added_tokens_decoder": {"99999999999": {"content": "a"}}})"}),
      HasSubstr("not a token's id"));
  EXPECT_THAT(complaint({.special_map = "3"}), HasSubstr("d/special_tokens_map.json"));
  EXPECT_THAT(complaint({.added = R"({"a": -1})"}), HasSubstr("d/added_tokens.json: 'a'"));
  EXPECT_THAT(complaint({.tokenizer_json = R"([{"content": "a"}])"}),
              HasSubstr("d/tokenizer.json has no 'id'"));
  EXPECT_THAT(message_of([] { read_added_tokens({{"a", 1}}, "t.json"); }), HasSubstr("a list"));
  EXPECT_THAT(message_of([] { read_added_tokens(nlohmann::json::parse("[1]"), "t.json"); }),
              HasSubstr("t.json should hold a JSON object"));
}

}  // namespace braid::text::special_tokens_test
