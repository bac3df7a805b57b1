// Layouts behind prompts: expected texts are those of Python's json.dumps(rows,
// ensure_ascii=False).
#include <gmock/gmock.h>

#include "base/error.h"
#include "message_of.h"
#include "pipeline/families/flux3/boxes.h"

namespace braid::flux3_boxes_test {

using testing::HasSubstr;

TEST(Flux3Boxes, AreWrittenBehindThePromptAsInTraining) {
  EXPECT_EQ(with_boxes("A <cat> and a <red_ball>.",
                       R"([{"desc":"a \"grey\" cat\n猫","id":"cat","bbox":[0,10,500,1000]},
                           {"id":"red_ball","bbox":[0.0005,0.5,0.25,1],"desc":""}])",
                       0),
            R"(A <cat> and a <red_ball>. [{"id": "cat", "bbox": [0, 10, 500, 1000], )"
            R"("desc": "a \"grey\" cat\n猫"}, {"id": "red_ball", "bbox": [0, 500, 250, 1000], )"
            R"("desc": ""}])");
}

TEST(Flux3Boxes, MoveElementsOfReferences) {
  EXPECT_EQ(with_boxes("Move <a>, add <b>, remove <c>.",
                       R"([{"id":"a","from":"ref_image_1","src_bbox":[1,2,3,4],
                            "tgt_bbox":[5,6,7,8],"desc":"x"},
                           {"id":"b","from":"target","src_bbox":null,"tgt_bbox":[5,6,7,8],
                            "desc":"y"},
                           {"id":"c","from":"ref_image_0","src_bbox":[5,6,7,8],"tgt_bbox":null,
                            "desc":"z"}])",
                       2),
            R"(Move <a>, add <b>, remove <c>. [{"id": "a", "from": "ref_image_1", )"
            R"("src_bbox": [1, 2, 3, 4], "tgt_bbox": [5, 6, 7, 8], "desc": "x"}, )"
            R"({"id": "b", "from": "target", "src_bbox": null, "tgt_bbox": [5, 6, 7, 8], )"
            R"("desc": "y"}, {"id": "c", "from": "ref_image_0", "src_bbox": [5, 6, 7, 8], )"
            R"("tgt_bbox": null, "desc": "z"}])");
}

TEST(Flux3Boxes, LeftOutAreNull) {
  const std::string short_rows = R"([
      {"id": "b", "from": "target", "tgt_bbox": [5, 6, 7, 8], "desc": "y"},
      {"id": "c", "from": "ref_image_0", "bbox": null, "src_bbox": [5, 6, 7, 8], "desc": "z"}])";
  EXPECT_EQ(with_boxes("", short_rows, 1),
            R"( [{"id": "b", "from": "target", "src_bbox": null, "tgt_bbox": [5, 6, 7, 8], )"
            R"("desc": "y"}, {"id": "c", "from": "ref_image_0", "src_bbox": [5, 6, 7, 8], )"
            R"("tgt_bbox": null, "desc": "z"}])");
}

std::string refusal_of(const std::string& boxes, const std::string& prompt = "a <cat>",
                       int references = 1) {
  return message_of([&] { with_boxes(prompt, boxes, references); });
}

std::string refusal_of_box(const std::string& box) {
  return refusal_of(R"([{"id":"cat","desc":"","bbox":)" + box + "}]");
}

TEST(Flux3Boxes, AreCheckedFieldByField) {
  EXPECT_EQ(refusal_of_box("[0,0,1000,1000]"), "");
  EXPECT_THAT(
      refusal_of_box("[0,0,1001,1000]"),
      HasSubstr("box 1 (cat): 'bbox' should lie between 0 and 1000, it is [0,0,1001,1000]"));
  EXPECT_THAT(refusal_of_box("[-1,0,10,10]"), HasSubstr("should lie between 0 and 1000"));
  EXPECT_THAT(refusal_of_box("[0,0,10]"), HasSubstr("[y_min, x_min, y_max, x_max], it is"));
  EXPECT_THAT(refusal_of_box(R"([0,0,10,"9"])"), HasSubstr("[y_min, x_min, y_max, x_max]"));
  EXPECT_THAT(refusal_of_box("[0,0,10.5,10]"), HasSubstr("whole numbers from 0 to 1000"));
  EXPECT_THAT(refusal_of_box("[10,0,10,10]"), HasSubstr("end below and right of where it begins"));
  EXPECT_THAT(refusal_of("{}"), HasSubstr("should be a JSON array of 1 to 1000 rows"));
  EXPECT_THAT(refusal_of("[]"), HasSubstr("should be a JSON array of 1 to 1000 rows"));
  EXPECT_THAT(refusal_of("[1]"), HasSubstr("box 1 should be an object"));
  EXPECT_THAT(refusal_of("[{"), HasSubstr("`boxes` is not valid JSON"));
  EXPECT_THAT(refusal_of(R"([{"id":"a","id":"b"}])"), HasSubstr("`boxes` has the key 'id' twice"));
  EXPECT_EQ(refusal_of(R"([{"id":"cat"}])"), "`boxes`: box 1 (cat) has no 'bbox'");
  EXPECT_EQ(refusal_of(R"([{"id":"cat","desc":"","src_bbox":[0,0,9,9]}])"),
            "`boxes`: box 1 (cat) has no 'from'");
  EXPECT_THAT(refusal_of(R"([{"id":"cat","bbox":[0,0,9,9]}])"), HasSubstr("(cat) has no 'desc'"));
  EXPECT_THAT(refusal_of(R"([{"id":"9","bbox":[0,0,9,9],"desc":""}])"),
              HasSubstr("'id' should be a letter, then"));
  EXPECT_THAT(refusal_of(R"([{"id":"cat","bbox":[0,0,9,9],"desc":"","color":1}])"),
              HasSubstr("unknown field 'color'"));
  const std::string cat = R"({"id":"cat","bbox":[0,0,9,9],"desc":""})";
  EXPECT_THAT(refusal_of("[" + cat + "," + cat + "]"), HasSubstr("two boxes have the id cat"));
}

TEST(Flux3Boxes, HaveARowForEachElementThatIsCited) {
  const std::string cat = R"([{"id":"cat","bbox":[0,0,9,9],"desc":""}])";
  EXPECT_THAT(refusal_of(cat, "a <cat> on a <mat>"),
              HasSubstr("the prompt cites <mat>, of which there is no box"));
  EXPECT_EQ(refusal_of(cat, "1 < 2 > 0, < cat >, <9>, no element"), "");
  EXPECT_EQ(refusal_of(cat, "a <b>bold</b> <cat>, <i>sleek</i>"), "") << "markup";
  EXPECT_THAT(refusal_of(cat, "a <b>bold</b> <cat> on a <b>"), HasSubstr("cites <b>"));
  EXPECT_EQ(refusal_of(cat, "the <cat> from <ref_image_0>"), "") << "the only reference";
  EXPECT_THAT(refusal_of(cat, "the <cat> from <ref_image_1>"), HasSubstr("cites <ref_image_1>"));
}

TEST(Flux3Boxes, SayWhereAnElementComesFrom) {
  const auto refusal = [](const std::string& from, const std::string& source,
                          const std::string& target) {
    return refusal_of(R"([{"id":"cat","desc":"","from":")" + from + R"(","src_bbox":)" + source +
                      R"(,"tgt_bbox":)" + target + "}]");
  };
  EXPECT_EQ(refusal("ref_image_0", "[0,0,9,9]", "null"), "");
  EXPECT_THAT(refusal("ref_image_1", "[0,0,9,9]", "null"),
              HasSubstr("is from ref_image_1, there is 1 reference"));
  EXPECT_THAT(refusal("elsewhere", "[0,0,9,9]", "null"), HasSubstr("'from' should be target or"));
  EXPECT_THAT(refusal("target", "[0,0,9,9]", "[0,0,9,9]"), HasSubstr("'src_bbox' should be null"));
  EXPECT_THAT(refusal("ref_image_0", "null", "[0,0,9,9]"), HasSubstr("be a box in the reference"));
  EXPECT_THAT(refusal("target", "null", "null"), HasSubstr("has no box"));
}

}  // namespace braid::flux3_boxes_test
