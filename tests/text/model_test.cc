// The files that hold a model: tokenizer.json's lists, vocab.json, merges.txt.
#include "text/vocabulary/model.h"

#include <gmock/gmock.h>

#include "text_testing.h"

namespace braid::text::model_test {

using namespace testing_text;
using testing::HasSubstr;

std::string complaint(const std::string& json) {
  Lists lists;
  return message_of([&] { read_model_json(json, "t.json", lists); });
}

TEST(ModelJson, LiftsTheListsOutOfTheTree) {
  Lists lists;
  const auto json = read_model_json(
      R"({"version": "1.0", "added_tokens": [{"id": 0, "x": [1, 2.5, -3, true, null]}],
          "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "unk_token": "a",
                    "merges": ["a b", ["b", "c d"]]}, "vocab": {"not": "lifted"}})",
      "t.json", lists);
  EXPECT_EQ(json,
            nlohmann::json::parse(
                R"({"version": "1.0", "added_tokens": [{"id": 0, "x": [1, 2.5, -3, true, null]}],
                          "model": {"type": "BPE", "vocab": null, "unk_token": "a", "merges": null},
                          "vocab": {"not": "lifted"}})"));
  EXPECT_EQ(lists.vocabulary.find("b"), 1);
  ASSERT_EQ(lists.merges.size(), 2u);
  EXPECT_EQ(lists.merges[0], (std::pair<std::string, std::string>("a", "b")));
  EXPECT_EQ(lists.merges[1], (std::pair<std::string, std::string>("b", "c d")));
}

TEST(ModelJson, ReadsScoredTokens) {
  Lists lists;
  read_model_json(R"({"model": {"vocab": [["<unk>", 0], ["a", -1.5], ["b", -2]], "merges": null}})",
                  "t.json", lists);
  ASSERT_EQ(lists.scored.size(), 3u);
  EXPECT_EQ(lists.scored[1].text, "a");
  EXPECT_EQ(lists.scored[1].score, -1.5);
  EXPECT_EQ(lists.scored[2].score, -2);
  EXPECT_EQ(lists.vocabulary.size(), 0u);
}

TEST(ModelJson, RefusesListsOfAnotherForm) {
  for (const char* vocab : {R"("a")",
                            "3",
                            "true",
                            R"({"a": -1})",
                            R"({"a": "b"})",
                            R"({"a": [1]})",
                            R"({"a": {}})",
                            R"({"a": 1.5})",
                            R"({"a": null})",
                            R"({"a": 4294967296})",
                            R"(["a", "b"])",
                            R"([["a"]])",
                            R"([["a", 1, 2]])",
                            R"([[1, "a"]])",
                            R"([["a", "b"]])",
                            R"([{"a": 1}])",
                            R"([[["a", 1]]])",
                            R"([["a", null]])",
                            R"([1])",
                            R"([[]])"})
    EXPECT_THAT(complaint(std::string(R"({"model": {"vocab": )") + vocab + "}}"),
                HasSubstr("t.json "))
        << vocab;
  for (const char* merges :
       {R"("a b")", "1", R"(["a"])", R"(["a b c"])", R"([["a"]])", R"([[1, 2]])",
        R"([["a", "b", "c"]])", R"([{"a": "b"}])", R"({"a": "b"})", R"([["a", ["b"]]])"})
    EXPECT_THAT(complaint(std::string(R"({"model": {"merges": )") + merges + "}}"),
                HasSubstr("t.json "))
        << merges;
}

TEST(ModelJson, NamesWhatIsThereTwice) {
  EXPECT_EQ(complaint(R"({"model": {"vocab": {"a": 0, "a": 1}}})"),
            "t.json has the token 'a' twice");
  EXPECT_EQ(complaint(R"({"a": {"b": 1, "b": 2}})"), "t.json has the key 'b' twice");
  EXPECT_EQ(complaint(R"({"model": {"vocab": {}, "vocab": {}}})"),
            "t.json has the key 'vocab' twice");
}

TEST(ModelJson, RefusesWhatIsNotJson) {
  for (const char* text : {"", "{", "[1,]", "{\"a\":1}x", "\"\xff\"", R"({"model": {"vocab": {"a")",
                           R"({"model": {"vocab": {"\ud800": 1}}})", R"({"model": {"merges": [)"})
    EXPECT_THAT(complaint(text), testing::StartsWith("t.json is not valid JSON: parse error at"))
        << text;
  EXPECT_THAT(complaint(std::string(100'000, '[')), HasSubstr("deeper than 100"));
  EXPECT_THAT(complaint(R"({"model": {"vocab": )" + std::string(100'000, '[')),
              HasSubstr("a list"));
}

Bpe from_files(const std::string& vocab, const std::string& merges) {
  return read_bpe_files(vocab, merges, {}, "folder");
}

TEST(ModelFiles, AreReadTogether) {
  const std::string vocab = R"({"a": 0, "b": 1, "ab": 2})";
  for (const char* merges :
       {"#version: 0.2\na b\n", "a b", "a b\r\n", "#version: 0.2\r\na b\r\n"}) {
    std::vector<std::int64_t> ids;
    from_files(vocab, merges).encode("ab", ids);
    EXPECT_EQ(ids, std::vector<std::int64_t>{2}) << merges;
  }
  EXPECT_EQ(from_files(vocab, "").size(), 3u);
}

TEST(ModelFiles, AreNamedInComplaints) {
  const auto complaint = [](const std::string& vocab, const std::string& merges) {
    return message_of([&] { from_files(vocab, merges); });
  };
  EXPECT_THAT(complaint("[]", ""), HasSubstr("folder/vocab.json holds no vocabulary"));
  EXPECT_THAT(complaint("{}", ""), HasSubstr("folder/vocab.json holds no vocabulary"));
  EXPECT_THAT(complaint("null", ""), HasSubstr("folder/vocab.json holds no vocabulary"));
  EXPECT_THAT(complaint("7", ""), HasSubstr("folder/vocab.json has 7 where"));
  EXPECT_THAT(complaint(R"({"a": 0, "a": 0})", ""), HasSubstr("the token 'a' twice"));
  EXPECT_THAT(complaint(R"({"a": 0})", "a\n"), HasSubstr("folder/merges.txt has the merge 'a'"));
  EXPECT_THAT(complaint(R"({"a": 0})", "a a\n\na a"),
              HasSubstr("folder/merges.txt has the merge ''"));
  EXPECT_THAT(complaint(R"({"a": 0})", "a a"), HasSubstr("folder merges 'aa'"));
}

TEST(ModelOptions, AreReadFromTokenizerJson) {
  const auto bpe = read_bpe_options({{"unk_token", "<u>"},
                                     {"continuing_subword_prefix", "##"},
                                     {"end_of_word_suffix", "</w>"},
                                     {"fuse_unk", true},
                                     {"byte_fallback", true},
                                     {"ignore_merges", true},
                                     {"dropout", nullptr}},
                                    "t");
  EXPECT_EQ(bpe.unk_token, "<u>");
  EXPECT_EQ(bpe.continuing_prefix, "##");
  EXPECT_EQ(bpe.end_suffix, "</w>");
  EXPECT_TRUE(bpe.fuse_unk && bpe.byte_fallback && bpe.ignore_merges);
  EXPECT_EQ(read_bpe_options(nlohmann::json::object(), "t").unk_token, std::nullopt);
  EXPECT_EQ(read_unigram_options({{"unk_id", 2}}, "t").unk_id, 2);
  EXPECT_EQ(read_unigram_options({{"unk_id", nullptr}}, "t").unk_id, std::nullopt);
  EXPECT_THAT(message_of([] {
                read_bpe_options({{"dropout", 0.1}}, "t.json");
              }),
              HasSubstr("t.json has a BPE dropout"));
  EXPECT_THAT(message_of([] {
                read_unigram_options({{"unk_id", -1}}, "t.json");
              }),
              HasSubstr("t.json: 'unk_id'"));
}

TEST(ModelOptions, NeedTheListsOfTheirKind) {
  EXPECT_THAT(message_of([] { make_bpe({}, {}, "t.json"); }), HasSubstr("tokens and ids"));
  EXPECT_THAT(message_of([] { make_unigram({}, {}, "t.json"); }), HasSubstr("tokens and scores"));
}

}  // namespace braid::text::model_test
