// The contract of Tokenizer, on tokenizers small enough to follow by hand.
#include "text/tokenizer.h"

#include <gmock/gmock.h>

#include <thread>

#include "text/build_tokenizer.h"
#include "text_testing.h"

namespace braid::tokenizer_test {

using namespace testing_text;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kVocab = R"({"a": 0, "b": 1, "a</w>": 2, "b</w>": 3, "ab</w>": 4,
  "<|startoftext|>": 5, "<|endoftext|>": 6})";

TokenizerFiles clip() {
  return {.folder = "clip",
          .vocab_json = kVocab,
          .merges_txt = "#version: 0.2\na b</w>\n",
          .tokenizer_config = R"({"tokenizer_class": "CLIPTokenizer"})"};
}

std::vector<std::int64_t> ids(const TokenizerFiles& files, std::string_view text,
                              std::int64_t length) {
  return build_tokenizer(files)->encode(text, length).ids;
}

std::string complaint(const TokenizerFiles& files) {
  return message_of([&] { build_tokenizer(files); });
}

TEST(Tokenizer, FramesAndPadsToTheLength) {
  const auto tokenizer = build_tokenizer(clip());
  const auto encoding = tokenizer->encode("AB b", 8);
  EXPECT_THAT(encoding.ids, ElementsAre(5, 4, 3, 6, 6, 6, 6, 6));
  EXPECT_EQ(encoding.begin, 0);
  EXPECT_EQ(encoding.length, 4);
  EXPECT_FALSE(encoding.truncated);
  EXPECT_THAT(tokenizer->encode("", 4).ids, ElementsAre(5, 6, 6, 6));
  EXPECT_EQ(tokenizer->vocab_size(), 7);
  EXPECT_EQ(tokenizer->pad_id(), 6);
}

TEST(Tokenizer, TruncatesBeforeItFrames) {
  const auto tokenizer = build_tokenizer(clip());
  const auto encoding = tokenizer->encode("a b a b", 5);
  EXPECT_THAT(encoding.ids, ElementsAre(5, 2, 3, 2, 6));
  EXPECT_EQ(encoding.length, 5);
  EXPECT_TRUE(encoding.truncated);
  EXPECT_FALSE(tokenizer->encode("a b a", 5).truncated);
  EXPECT_THAT(tokenizer->encode("a b", 2).ids, ElementsAre(5, 6));
}

TEST(Tokenizer, TakesTheSidesItIsToldTo) {
  auto files = clip();
  files.tokenizer_config = R"({"tokenizer_class": "CLIPTokenizer", "padding_side": "left",
                               "truncation_side": "left"})";
  EXPECT_THAT(ids(files, "a b a b b", 5), ElementsAre(5, 2, 3, 3, 6));
  EXPECT_THAT(ids(files, "b", 5), ElementsAre(6, 6, 5, 3, 6));
  EXPECT_EQ(build_tokenizer(files)->encode("b", 5).begin, 2);
  EXPECT_EQ(build_tokenizer(files)->encode("b", 5).length, 3);
  EXPECT_EQ(build_tokenizer(files)->encode("b b b", 5).begin, 0);
  files.tokenizer_config = R"({"tokenizer_class": "CLIPTokenizer", "padding_side": "top"})";
  EXPECT_THAT(complaint(files), HasSubstr("'padding_side' should be left or right, it is 'top'"));
}

TEST(Tokenizer, RefusesLengthsWithoutRoomForTheFrame) {
  const auto tokenizer = build_tokenizer(clip());
  for (const std::int64_t length : {1, 0, -5, 1 << 21})
    EXPECT_THAT(message_of([&] { tokenizer->encode("a", length); }),
                HasSubstr("should lie between 2 and"));
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  const auto tokenizer = build_tokenizer(clip());
  for (const char* text : {"a\xff", "\xed\xa0\x80", "\xc3"})
    EXPECT_EQ(message_of([&] { tokenizer->encode(text, 8); }),
              "the text to tokenize is not valid UTF-8");
}

TEST(Tokenizer, KnowsSpecialTokensInTheText) {
  EXPECT_THAT(ids(clip(), "a<|endoftext|>b", 6), ElementsAre(5, 2, 6, 3, 6, 6));
}

TEST(Tokenizer, HasALengthOfItsOwn) {
  const auto length = [](const std::string& config) {
    auto files = clip();
    files.tokenizer_config = R"({"tokenizer_class": "CLIPTokenizer")" + config + "}";
    return build_tokenizer(files)->model_max_length();
  };
  EXPECT_EQ(length(""), 77);
  EXPECT_EQ(length(R"(, "model_max_length": 16)"), 16);
  EXPECT_EQ(length(R"(, "model_max_length": 1e30)"), 77);  // transformers' "no limit"
  EXPECT_EQ(length(R"(, "model_max_length": 1000000000000000019884624838656)"), 77);
  EXPECT_EQ(length(R"(, "model_max_length": -3)"), 77);
}

TEST(Tokenizer, EncodesOnManyThreadsAlike) {
  const auto tokenizer = load_tokenizer(data("clip"));
  const auto texts = corpus();
  std::vector<std::vector<std::vector<std::int64_t>>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results)
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < texts.size(); i += 3)
        result.push_back(tokenizer->encode(texts[i], 77).ids);
    });
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

TEST(Tokenizer, LoadsOnManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::vector<std::vector<std::int64_t>> results(4);
  for (auto& result : results)
    threads.emplace_back([&] { result = load_tokenizer(data("qwen"))->encode("don't", 16).ids; });
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

TEST(Tokenizer, TakesAWordOfAHundredThousandLettersInItsStride) {
  for (const char* folder : {"clip", "t5", "qwen", "llama", "zoo"}) {
    const auto tokenizer = load_tokenizer(data(folder));
    for (const char* unit :
         {"a", "é", "我", "😀", " ", "\n", "7", "!", "e\u0301", "<|endoftext|>"}) {
      std::string text;
      while (text.size() < 100'000) text += unit;
      EXPECT_EQ(tokenizer->encode(text, 77).ids.size(), 77u);
    }
  }
}

TokenizerFiles qwen(const std::string& settings) {
  return {.folder = "qwen",
          .vocab_json = R"({"a": 0, "Ġ": 1, "Ġa": 2, "<|endoftext|>": 3, "Ċ": 4})",
          .merges_txt = "Ġ a\n",
          .tokenizer_config = R"({"tokenizer_class": "Qwen2Tokenizer")" + settings + "}"};
}

TEST(Tokenizer, ReadsQwensFiles) {
  EXPECT_THAT(ids(qwen(""), "a a\n<|endoftext|>", 6), ElementsAre(0, 2, 4, 3, 3, 3));
  EXPECT_THAT(ids(qwen(R"(, "add_prefix_space": true)"), "a", 2), ElementsAre(2, 3));
  EXPECT_THAT(ids(qwen(R"(, "add_bos_token": true, "bos_token": "<s>")"), "a", 3),
              ElementsAre(5, 0, 3));
  EXPECT_THAT(ids(qwen(R"(, "add_eos_token": true)"), "a", 3), ElementsAre(0, 3, 3));
}

// Whatever the decoder says: Qwen2Tokenizer adds its special tokens again, without flags.
TEST(Tokenizer, ClearsTheFlagsOfQwensSpecialTokens) {
  const auto flags = [](const std::string& token) {
    return qwen(R"(, "added_tokens_decoder": {"3": {"content": ")" + token +
                R"(", "lstrip": true, "special": true}})");
  };
  EXPECT_THAT(ids(flags("<|endoftext|>"), "a <|endoftext|>", 4), ElementsAre(0, 1, 3, 3));
  EXPECT_THAT(ids(flags("<x>"), "a <x>", 4), ElementsAre(0, 5, 3, 3));
}

constexpr const char* kUnigram = R"({"version": "1.0", "added_tokens": [{"id": 1, "content": "</s>",
    "special": true}], "normalizer": null,
  "pre_tokenizer": {"type": "Metaspace", "replacement": "_"},
  "post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}},
    {"SpecialToken": {"id": "</s>"}}], "special_tokens": {"</s>": {"ids": [1]}}},
  "model": {"type": "Unigram", "unk_id": 2, "vocab": [["<pad>", 0], ["</s>", 0], ["<unk>", 0],
    ["_", -2], ["a", -1], ["b", -1], ["_a", -1.5]]}})";

TEST(Tokenizer, ReadsTokenizerJsonAlone) {
  const TokenizerFiles files{.folder = "t5", .tokenizer_json = kUnigram};
  const auto tokenizer = build_tokenizer(files);
  EXPECT_THAT(tokenizer->encode("ab</s>xa", 9).ids, ElementsAre(6, 5, 1, 3, 2, 4, 1, 0, 0));
  EXPECT_EQ(tokenizer->pad_id(), 0);
  EXPECT_EQ(tokenizer->model_max_length(), 512);
}

constexpr const char* kWords = R"({"version": "1.0", "added_tokens": [{"id": 0, "content": "<pad>",
    "special": true}], "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"},
  "post_processor": null, "model": {"type": "WordLevel", "unk_token": "<unk>",
    "vocab": {"<pad>": 0, "<unk>": 1, "a": 2, "red": 3, "circle": 4, ",": 5}}})";

TEST(Tokenizer, ReadsWholeWords) {
  TokenizerFiles files{.folder = "t", .tokenizer_json = kWords};
  EXPECT_THAT(ids(files, "A red, pink circle<pad>reds", 9), ElementsAre(2, 3, 5, 1, 4, 0, 1, 0, 0));
  EXPECT_EQ(build_tokenizer(files)->vocab_size(), 6);
  auto document = nlohmann::json::parse(kWords);
  document["model"].erase("unk_token");
  files.tokenizer_json = document.dump();
  EXPECT_THAT(ids(files, "a red", 3), ElementsAre(2, 3, 0));
  EXPECT_THAT(message_of([&] { ids(files, "a pink", 3); }), HasSubstr("a word, 'pink', that"));
}

// transformers' T5Tokenizer has its own steps; it takes only the vocabulary from this file.
TEST(Tokenizer, LetsTheClassOverruleTheFile) {
  const TokenizerFiles files{.folder = "t5",
                             .tokenizer_json = kUnigram,
                             .tokenizer_config = R"({"tokenizer_class": "T5TokenizerFast"})"};
  EXPECT_THAT(ids(files, "_a", 4), ElementsAre(2, 6, 1, 0));  // U+2581 is unknown
  EXPECT_EQ(build_tokenizer(files)->vocab_size(), 7 + 100);   // and <extra_id_0> to 99
}

TEST(Tokenizer, TakesItsPadTokenFromTheConfigurationOrTheFile) {
  auto document = nlohmann::json::parse(kUnigram);
  document["padding"] = {{"pad_token", "a"}, {"direction", "Left"}, {"strategy", "BatchLongest"}};
  TokenizerFiles files{.folder = "t", .tokenizer_json = document.dump()};
  EXPECT_THAT(ids(files, "b", 4), ElementsAre(4, 3, 5, 1));
  files.tokenizer_config = R"({"pad_token": "</s>", "padding_side": "right"})";
  EXPECT_THAT(ids(files, "b", 4), ElementsAre(3, 5, 1, 1));
  document["padding"] = nullptr;
  document["model"]["vocab"] = nlohmann::json::parse(R"([["a", 0]])");
  document["model"]["unk_id"] = 0;
  document["added_tokens"] = nullptr;
  EXPECT_THAT(complaint({.folder = "t", .tokenizer_json = document.dump()}),
              HasSubstr("t/tokenizer.json has no pad token"));
}

TEST(Tokenizer, ExplainsWhatItCannotRead) {
  EXPECT_THAT(complaint({.folder = "t", .tokenizer_json = "{}"}), HasSubstr("has no 'model'"));
  EXPECT_THAT(complaint({.folder = "t", .tokenizer_json = R"({"version": "2.0"})"}),
              HasSubstr("t/tokenizer.json has version '2.0'"));
  EXPECT_THAT(complaint({.folder = "t", .tokenizer_json = R"({"model": {"type": "WordPiece"}})"}),
              HasSubstr("model of type 'WordPiece', BPE, Unigram or WordLevel was expected"));
  auto files = clip();
  files.tokenizer_config = R"({"tokenizer_class": "GPT2Tokenizer"})";
  EXPECT_THAT(complaint(files), HasSubstr("class GPT2Tokenizer, which can only be read from"));
  files.tokenizer_config = R"({"tokenizer_class": "T5Tokenizer"})";
  EXPECT_THAT(complaint(files), HasSubstr("neither tokenizer.json nor spiece.model"));
  files = clip();
  files.merges_txt.reset();
  EXPECT_THAT(complaint(files), HasSubstr("vocab.json or merges.txt is missing"));
  files = clip();
  files.tokenizer_config = R"({"tokenizer_class": "CLIPTokenizer", "pad_token": null})";
  EXPECT_EQ(complaint(files), "clip holds a tokenizer without a pad_token");
}

class Folder : public testing::Test {
 protected:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              (std::string("braid_") +
               testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() override { std::filesystem::remove_all(path_); }
  std::string loading() const {
    return message_of([&] { load_tokenizer(path_); });
  }

  std::filesystem::path path_;
};

TEST_F(Folder, IsNamedWhenItHoldsNoTokenizer) {
  EXPECT_THAT(loading(), HasSubstr(path_.string()));
  EXPECT_THAT(loading(), HasSubstr("neither tokenizer.json"));
  EXPECT_THAT(message_of([&] { load_tokenizer(path_ / "none"); }), HasSubstr("is not a folder"));
  write_file(path_ / "vocab.json", kVocab);
  EXPECT_THAT(loading(), HasSubstr("neither tokenizer.json"));
}

TEST_F(Folder, PrefersTokenizerJsonAsTransformersDoes) {
  write_file(path_ / "vocab.json", "not JSON");
  write_file(path_ / "merges.txt", "not merges");
  write_file(path_ / "spiece.model", "no model");
  write_file(path_ / "tokenizer.json", kUnigram);
  EXPECT_EQ(load_tokenizer(path_)->vocab_size(), 7);
  write_file(path_ / "tokenizer.json", "{");
  EXPECT_THAT(loading(), HasSubstr("tokenizer.json is not valid JSON"));
}

TEST_F(Folder, GuessesTheClassWhereNoneIsNamed) {
  write_file(path_ / "vocab.json", kVocab);
  write_file(path_ / "merges.txt", "a b</w>\n");
  EXPECT_THAT(load_tokenizer(path_)->encode("AB", 4).ids, ElementsAre(5, 4, 6, 6));
  write_file(path_ / "vocab.json", R"({"a": 0, "b": 1, "<|endoftext|>": 2, "ab": 3})");
  write_file(path_ / "merges.txt", "a b\n");
  EXPECT_THAT(load_tokenizer(path_)->encode("aba", 4).ids, ElementsAre(3, 0, 2, 2));
}

}  // namespace braid::tokenizer_test
