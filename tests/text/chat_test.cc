// Chats, and the tokens that matching tokenizers produce.
#include "text/chat.h"

#include <gmock/gmock.h>

#include "base/sha256.h"
#include "text/tokenizer_files.h"
#include "text_testing.h"

namespace braid::chat_test {

using namespace testing_text;

std::vector<std::int64_t> ids_of(const Tokenizer& tokenizer, const std::string& text) {
  const auto encoding = tokenizer.encode(text, 512);
  const auto begin = encoding.ids.begin() + encoding.begin;
  return {begin, begin + encoding.length};
}

TEST(Qwen3Chat, HasATurnOfTheUsersAndBeginsTheAssistants) {
  EXPECT_EQ(qwen3_chat("a cat", Thinking::kAllowed),
            "<|im_start|>user\na cat<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(qwen3_chat("", Thinking::kSkipped),
            "<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n");
}

TEST(MistralChat, HasATurnOfTheSystemsAndOneOfTheUsers) {
  EXPECT_EQ(mistral_chat("Be brief.", "a cat"),
            "[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][INST]a cat[/INST]");
}

// Those of diffusers' pipelines, of which the braces are replaced.
TEST(QwenImageChat, IsAsTheModelsWereTrained) {
  const auto begins = [](const std::string& chat) { return sha256_hex(chat).substr(0, 16); };
  EXPECT_EQ(begins(description_chat("{}") + std::string(kAssistantTurn)), "0194d360a674d2f1");
  EXPECT_EQ(begins(qwen_image_edit_chat("{}", 1, PictureNames::kNone)), "846b0a7896f4ed82");
  EXPECT_EQ(begins(qwen_image_edit_chat("{}", 0, PictureNames::kNumbered)), "d5d65822319c1228");
  EXPECT_THAT(
      qwen_image_edit_chat("a cat", 2, PictureNames::kNumbered),
      testing::HasSubstr("user\nPicture 1: <|vision_start|><|image_pad|><|vision_end|>Picture 2: "
                         "<|vision_start|><|image_pad|><|vision_end|>a cat<|im_end|>"));
}

// Ids of texts are compared in parity_test.cc; this checks that each marker is one token.
TEST(Qwen3Chat, HasMarksThatAreTokens) {
  const auto tokenizer = load_tokenizer(data("qwen_json"));
  const auto mark = [&](const char* text) {
    const auto ids = ids_of(*tokenizer, text);
    EXPECT_EQ(ids.size(), 1u) << text;
    return ids.front();
  };
  const auto ids = ids_of(*tokenizer, qwen3_chat("a cat", Thinking::kSkipped));
  EXPECT_EQ(ids.front(), mark("<|im_start|>"));
  EXPECT_EQ(std::count(ids.begin(), ids.end(), mark("<|im_start|>")), 2);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), mark("<|im_end|>")), 1);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), mark("<think>")), 1);
}

TEST(MistralChat, HasMarksThatAreTokensBehindTheTokenizersOwn) {
  const auto tokenizer = load_tokenizer(data("tekken"));
  const auto ids = ids_of(*tokenizer, mistral_chat("", ""));
  EXPECT_THAT(ids, testing::ElementsAre(1, 7, 8, 3, 4));  // <s> and the four markers
  const auto long_ids = ids_of(*tokenizer, mistral_chat(kFlux2SystemMessage, "a [IMG] cat"));
  EXPECT_EQ(std::count(long_ids.begin(), long_ids.end(), 5), 1);
  EXPECT_EQ(long_ids.back(), 4);
}

// The digest is that of diffusers' constant.
TEST(Flux2SystemMessage, IsTheReferences) {
  EXPECT_EQ(kFlux2SystemMessage.size(), 168u);
  Digest digest;
  for (const char c : kFlux2SystemMessage) digest.add(std::uint8_t(c));
  EXPECT_EQ(digest.hex(), "c75692eeb17fd5e3");
}

}  // namespace braid::chat_test
