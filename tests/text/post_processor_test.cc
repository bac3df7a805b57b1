#include "text/post_processor.h"

#include <gmock/gmock.h>

#include "text_testing.h"

namespace braid::text::post_processor_test {

using namespace testing_text;
using testing::ElementsAre;
using testing::HasSubstr;

Frame frame(const std::string& json) {
  return read_post_processor(nlohmann::json::parse(json), "t.json");
}

constexpr const char* kTemplate = R"({"type": "TemplateProcessing",
  "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
             {"SpecialToken": {"id": "</s>", "type_id": 0}},
             {"SpecialToken": {"id": "<s>", "type_id": 0}}],
  "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [1, 5], "tokens": ["<s>", "x"]},
                                 "</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}}})";

TEST(PostProcessor, FramesTheText) {
  EXPECT_EQ(frame("null").size(), 0);
  EXPECT_EQ(frame(R"({"type": "ByteLevel", "trim_offsets": false})").size(), 0);
  EXPECT_THAT(frame(kTemplate).before, ElementsAre(1, 5));
  EXPECT_THAT(frame(kTemplate).after, ElementsAre(2, 1, 5));
  const auto roberta =
      frame(R"({"type": "RobertaProcessing", "cls": ["<s>", 8], "sep": ["</s>", 9]})");
  EXPECT_THAT(roberta.before, ElementsAre(8));
  EXPECT_THAT(roberta.after, ElementsAre(9));
}

TEST(PostProcessor, FramesFromTheInsideOutInASequence) {
  const auto both = frame(
      R"({"type": "Sequence", "processors": [
          {"type": "BertProcessing", "cls": ["a", 1], "sep": ["b", 2]},
          {"type": "ByteLevel"}, {"type": "BertProcessing", "cls": ["c", 3], "sep": ["d", 4]}]})");
  EXPECT_THAT(both.before, ElementsAre(3, 1));
  EXPECT_THAT(both.after, ElementsAre(2, 4));
}

TEST(PostProcessor, NamesWhatItCannotUse) {
  const auto complaint = [](const std::string& json) { return message_of([&] { frame(json); }); };
  EXPECT_EQ(complaint(R"({"type": "Wreath"})"),
            "t.json asks for the post-processor 'Wreath', which is not supported");
  const auto of_single = [&](const std::string& single) {
    return complaint(R"({"type": "TemplateProcessing", "special_tokens": {"<s>": {}}, "single": )" +
                     single + "}");
  };
  EXPECT_THAT(of_single(R"([{"Sequence": {"id": "B"}}])"), HasSubstr("just once"));
  EXPECT_THAT(of_single(R"([{"Sequence": {"id": "A"}}, {"Sequence": {"id": "A"}}])"),
              HasSubstr("just once"));
  EXPECT_THAT(of_single("[]"), HasSubstr("without the text"));
  EXPECT_THAT(of_single("\"$A\""), HasSubstr("a list"));
  EXPECT_THAT(of_single(R"([{"SpecialToken": {"id": "<x>"}}])"), HasSubstr("t.json has no '<x>'"));
  EXPECT_THAT(of_single(R"([{"SpecialToken": {"id": "<s>"}}])"), HasSubstr("without 'ids'"));
  EXPECT_THAT(complaint(R"({"type": "BertProcessing", "cls": ["a", -1], "sep": ["b", 1]})"),
              HasSubstr("'cls' should be a token and its id"));
  EXPECT_THAT(complaint(R"({"type": "Sequence", "processors": 1})"), HasSubstr("a list"));
}

}  // namespace braid::text::post_processor_test
