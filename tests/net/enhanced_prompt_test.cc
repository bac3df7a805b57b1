// Answers as enhancers write them, and as they should not.
#include "net/enhancer/enhanced_prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace braid::net::enhanced_prompt_test {

using testing::HasSubstr;

std::string prompt_in(const std::string& content) { return read_enhanced(content, 2).prompt; }

std::string nonsense(const std::string& content) {
  try {
    return "it was read: " + read_enhanced(content, 2).prompt.substr(0, 200);
  } catch (const EnhancerFailure& failure) {
    EXPECT_EQ(int(failure.kind()), int(EnhancerFailure::Kind::kNonsense));
    return failure.what();
  }
}

TEST(EnhancedPrompt, IsAllOfAPlainAnswer) {
  EXPECT_EQ(prompt_in(" \n A fox, \"quoted\" {braces}\nand lines.\n"),
            "A fox, \"quoted\" {braces}\nand lines.");
  EXPECT_EQ(prompt_in("ein Fuchs \xe2\x98\x85 \xf0\x9f\xa6\x8a"),
            "ein Fuchs \xe2\x98\x85 \xf0\x9f\xa6\x8a");
}

TEST(EnhancedPrompt, HasNoThoughts) {
  EXPECT_EQ(prompt_in("<think>a {\"rewritten_prompt\": \"draft\"} hm</think>\n\nA fox."), "A fox.");
  EXPECT_EQ(prompt_in("began in the template</think>A fox."), "A fox.");
  EXPECT_EQ(prompt_in("<think></think>A<think>b</think> fox"), "fox");
  EXPECT_THAT(nonsense("<think>a fox, no, a"), HasSubstr("its thoughts have no end"));
  EXPECT_THAT(nonsense("<think>a</think>b<think>c"), HasSubstr("its thoughts have no end"));
  EXPECT_THAT(nonsense("<think>only thoughts</think>"), HasSubstr("an empty answer"));
}

TEST(EnhancedPrompt, HasNoFence) {
  EXPECT_EQ(prompt_in("```\nA fox.\n```"), "A fox.");
  EXPECT_EQ(prompt_in("```json\n{\"prompt\": \"A fox.\"}\n```"), "A fox.");
  EXPECT_THAT(nonsense("```json\n{\"prompt\": \"A fox.\"}"), HasSubstr("has no end"));
  EXPECT_THAT(nonsense("```"), HasSubstr("has no end"));
}

TEST(EnhancedPrompt, IsTheLastObjectWithAPrompt) {
  for (const std::string name :
       {"rewritten_prompt", "rewrited_prompt", "enhanced_prompt", "revised_prompt", "prompt"})
    EXPECT_EQ(prompt_in("Here: {\"" + name + "\": \"A fox.\"} Enjoy!"), "A fox.") << name;
  EXPECT_EQ(prompt_in(R"({"prompt": "one"} {"prompt": "two"} {"note": "three"})"), "two");
  EXPECT_EQ(prompt_in(R"({"prompt": "a } b { c \" {d}", "more": {"x": {"y": 1}}})"),
            "a } b { c \" {d}");
}

TEST(EnhancedPrompt, HasAShapeOrASize) {
  const auto read = read_enhanced(
      R"({"rewritten_prompt": "a", "wh_ratio": "16:9", "ratio_follow": "<image2>"})", 2);
  ASSERT_TRUE(read.shape && read.like_picture);
  EXPECT_EQ(read.shape->width, 16);
  EXPECT_EQ(read.shape->height, 9);
  EXPECT_EQ(*read.like_picture, 2);
  EXPECT_FALSE(read.pixels);
  const auto sized = read_enhanced(R"({"prompt": "a", "size": "1024x768"})", 0);
  ASSERT_TRUE(sized.pixels);
  EXPECT_EQ(sized.pixels->width, 1024);
  EXPECT_EQ(sized.pixels->height, 768);
  const auto none =
      read_enhanced(R"({"rewritten_prompt": "a", "wh_ratio": "", "ratio_follow": null})", 0);
  EXPECT_FALSE(none.shape || none.like_picture || none.pixels);
}

TEST(EnhancedPrompt, HasBoxes) {
  const auto read = read_enhanced(
      R"({"prompt": "a <cup_1>", "boxes": [{"id": "cup_1", "bbox": [1, 2, 30, 40], "desc": "b"}]})",
      0);
  EXPECT_EQ(read.boxes, R"([{"bbox":[1,2,30,40],"desc":"b","id":"cup_1"}])");
  EXPECT_EQ(read_enhanced(R"({"prompt": "a", "boxes": []})", 0).boxes, "");
}

TEST(EnhancedPrompt, IsNothingOfOtherTypes) {
  for (const char* const content :
       {R"({"rewritten_prompt": 7})", R"({"rewritten_prompt": null})", R"({"prompt": ["a"]})",
        R"({"prompt": "a", "wh_ratio": 1.5})", R"({"prompt": "a", "wh_ratio": "wide"})",
        R"({"prompt": "a", "wh_ratio": "0:1"})", R"({"prompt": "a", "wh_ratio": "100:1"})",
        R"({"prompt": "a", "wh_ratio": "1:1:1"})", R"({"prompt": "a", "size": "big"})",
        R"({"prompt": "a", "size": "99999999999x1"})",
        R"({"prompt": "a", "ratio_follow": "<image3>"})",
        R"({"prompt": "a", "ratio_follow": "<image0>"})",
        R"({"prompt": "a", "ratio_follow": "<image>"})",
        R"({"prompt": "a", "ratio_follow": "image1"})", R"({"prompt": "a", "ratio_follow": 1})",
        R"({"prompt": "a", "boxes": "none"})", R"({"prompt": "a", "boxes": [1]})",
        R"({"prompt": "a", "boxes": [{"id": "b", "bbox": [5, 5, 5, 5], "desc": "c"}]})"})
    EXPECT_THAT(nonsense(content), HasSubstr("answers nonsense: ")) << content;
}

TEST(EnhancedPrompt, IsNotHalfOfOne) {
  for (const char* const content :
       {R"({"rewritten_prompt": "A fox in)", R"({"rewritten_prompt": "A fox in")",
        R"(Sure: {"rewritten_prompt": "A fox in)", "{", "[1, 2", R"({"caption": "A fox"})",
        R"({"prompt": "a", "prompt": "b"})"})
    EXPECT_THAT(nonsense(content), HasSubstr("JSON without an end, or without a prompt"))
        << content;
}

TEST(EnhancedPrompt, IsText) {
  EXPECT_THAT(nonsense(""), HasSubstr("an empty answer"));
  EXPECT_THAT(nonsense(" \n\t"), HasSubstr("an empty answer"));
  EXPECT_THAT(nonsense(R"({"prompt": "  "})"), HasSubstr("an empty prompt"));
  EXPECT_THAT(nonsense("a \x80 b"), HasSubstr("bytes that are no text"));
  EXPECT_THAT(nonsense("a \xef\xbf\xbd b"), HasSubstr("bytes that are no text"));
  EXPECT_THAT(nonsense("a \x1b[31m b"), HasSubstr("bytes that are no text"));
  EXPECT_THAT(nonsense(std::string("a\0b", 3)), HasSubstr("bytes that are no text"));
}

TEST(EnhancedPrompt, HasTheLengthOfAPrompt) {
  EXPECT_EQ(prompt_in(std::string(kLongestEnhanced, 'a')).size(), kLongestEnhanced);
  EXPECT_THAT(nonsense(std::string(kLongestEnhanced + 1, 'a')),
              HasSubstr("a prompt of 32001 characters"));
  EXPECT_THAT(nonsense(std::string(2 << 20, 'a')), HasSubstr("an answer of 2097152 bytes"));
}

// Each of these took minutes for a reader that tries all braces, or the program's stack.
TEST(EnhancedPrompt, IsReadInNoTime) {
  const auto began = std::chrono::steady_clock::now();
  for (const std::string piece : {"{", "}", "{}", "{\"", "[", "[{", "{\"prompt\":"}) {
    std::string content;
    while (content.size() < 1'000'000) content += piece;
    EXPECT_THAT(nonsense(content), HasSubstr("answers nonsense"));
    EXPECT_THROW(read_laid_out("a " + content, "[]"), EnhancerFailure);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
}

}  // namespace braid::net::enhanced_prompt_test
