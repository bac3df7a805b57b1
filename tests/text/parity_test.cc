// Equal to transformers: every text of the corpus, through every tokenizer, at four lengths.
// tools/parity/dump_tokenizers.py dumped the expected values.
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>

#include "text/tokenizer_files.h"
#include "text_testing.h"

namespace braid::parity_test {

using namespace testing_text;

struct Case {
  const char* expected;
  std::filesystem::path folder;
};

class Parity : public testing::TestWithParam<Case> {};

std::string digest(const Tokenizer& tokenizer, const std::string& text) {
  Digest out;
  for (const std::int64_t length : {16, 64, 77, 512})
    for (const auto id : tokenizer.encode(text, length).ids) out.add(std::uint64_t(id));
  return out.hex();
}

TEST_P(Parity, GivesTheIdsOfTransformersForEveryText) {
  const auto tokenizer = load_tokenizer(GetParam().folder);
  const auto texts = corpus();
  const auto expected = lines_of(data(GetParam().expected));
  ASSERT_EQ(texts.size(), expected.size());
  ASSERT_GE(texts.size(), 500u);
  for (std::size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(digest(*tokenizer, texts[i]), expected[i])
        << "text " << i << ": " << nlohmann::json(texts[i].substr(0, 200)).dump(-1, ' ', true);
}

const std::filesystem::path kDemo = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo";

INSTANTIATE_TEST_SUITE_P(
    Tokenizers, Parity,
    testing::Values(Case{"clip.expected", data("clip")},
                    Case{"clip_json.expected", data("clip_json")}, Case{"t5.expected", data("t5")},
                    Case{"t5_json.expected", data("t5_json")}, Case{"qwen.expected", data("qwen")},
                    Case{"qwen_json.expected", data("qwen_json")},
                    Case{"llama.expected", data("llama")}, Case{"tekken.expected", data("tekken")},
                    Case{"zoo.expected", data("zoo")},
                    Case{"demo_clip.expected", kDemo / "tokenizer"},
                    Case{"demo_t5.expected", kDemo / "tokenizer_2"}),
    [](const auto& info) {
      const std::string name = info.param.expected;
      return name.substr(0, name.find('.'));
    });

TEST(Parity, ReadsTheDemosTwoFilesForT5Alike) {
  const auto folder = std::filesystem::temp_directory_path() / "braid_spiece_only";
  std::filesystem::create_directories(folder);
  for (const char* file : {"spiece.model", "tokenizer_config.json", "special_tokens_map.json"})
    std::filesystem::copy_file(kDemo / "tokenizer_2" / file, folder / file,
                               std::filesystem::copy_options::overwrite_existing);
  const auto from_spiece = load_tokenizer(folder);
  const auto from_json = load_tokenizer(kDemo / "tokenizer_2");
  EXPECT_EQ(from_spiece->vocab_size(), from_json->vocab_size());
  EXPECT_EQ(from_spiece->pad_id(), from_json->pad_id());
  for (const auto& text : corpus())
    EXPECT_EQ(from_spiece->encode(text, 512).ids, from_json->encode(text, 512).ids) << text;
}

// SentencePiece itself is the older reference. It agrees with transformers on ordinary text.
TEST(Parity, AgreesWithSentencePieceOnPrompts) {
  const auto tokenizer = load_tokenizer(data("t5"));
  sentencepiece::SentencePieceProcessor library;
  ASSERT_TRUE(library.Load((data("t5") / "spiece.model").string()).ok());
  for (const std::string text :
       {"A photo of a red fox jumping over a sleeping dog, golden hour, 35mm, f/1.8.",
        "an oil painting of the Eiffel Tower in winter -- by Claude Monet (1890)",
        "  Le café près de l'île  où Noël a été fêté ", "Съешь же ещё этих мягких булок",
        "你好，世界！一只红色的狐狸", "ＦＵＬＬＷＩＤＴＨ ½ ﬁ ①"}) {
    std::vector<int> ids;
    ASSERT_TRUE(library.Encode(text, &ids).ok());
    ids.push_back(1);  // </s>
    auto ours = tokenizer->encode(text, 512);
    ours.ids.resize(std::size_t(ours.length));
    EXPECT_EQ(ours.ids, std::vector<std::int64_t>(ids.begin(), ids.end())) << text;
  }
}

}  // namespace braid::parity_test
