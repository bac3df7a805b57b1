// Expected texts are those of boxes_to_canvas and reconcile_boxes in
// diffusers.modular_pipelines.flux3.prompt_upsampler.
#include "net/enhancer/layout.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace braid::net::layout_test {

const char* const kBoxes = R"([{"id": "cup_1", "bbox": [0.1, 0.2, 0.3005, 0.4], "desc": "a cup"},
    {"id": "dog_1", "bbox": [500, 500, 900, 950], "desc": "a dog é"}])";
const char* const kRows = R"([{"id": "cup_1", "bbox": [100, 200, 300, 400], "desc": "a cup"}, )"
                          R"({"id": "dog_1", "bbox": [500, 500, 900, 950], "desc": "a dog é"}])";

TEST(Layout, PutsBoxesOnTheCanvas) {
  EXPECT_EQ(rows_on_canvas(kBoxes), kRows);
  EXPECT_EQ(rows_on_canvas(R"([{"id": "a", "from": "ref_image_0", "src_bbox": [0.1, 0.1, 0.2, 0.2],
                                "tgt_bbox": null, "desc": "x"}])"),
            R"([{"id": "a", "from": "ref_image_0", "src_bbox": [100, 100, 200, 200], )"
            R"("tgt_bbox": null, "desc": "x"}])");
}

TEST(Layout, RefusesWhatAreNoBoxes) {
  for (const char* const boxes :
       {"", "{}", "[]", "[1]", "[{}]", R"([{"id": "1"}])", R"([{"id": "a b"}])",
        R"([{"id": "a", "bbox": 1}])", R"([{"id": "a", "bbox": [1, 2, 3]}])",
        R"([{"id": "a", "bbox": [1, 2, 3, "4"]}])"})
    EXPECT_THROW(rows_on_canvas(boxes), InputError) << boxes;
}

TEST(Layout, KeepsTheUsersRowsAndTakesDescriptions) {
  const auto laid_out = with_locked_rows(
      R"(A photograph of a mug <mug_1> beside a dog <dog_1> and a lamp <lamp_1>, [sic]. )"
      R"([{"id": "mug_1", "bbox": [101, 200, 300, 400], "desc": "a white mug"}, )"
      R"({"id": "dog_1", "bbox": [1, 2, 3, 4], "desc": " a brown dog "}, )"
      R"({"id": "lamp_1", "bbox": [0, 700, 300, 900], "desc": "a lamp"}, )"
      R"({"id": "cat_1", "bbox": [0, 0, 10, 10], "desc": "not cited"}, )"
      R"({"id": "sun_1", "bbox": [0, 0, 2000, 10], "desc": "outside"}])",
      kRows);
  EXPECT_EQ(laid_out.caption,
            "A photograph of a mug <cup_1> beside a dog <dog_1> and a lamp <lamp_1>, [sic].");
  EXPECT_EQ(laid_out.rows,
            R"([{"id": "cup_1", "bbox": [100, 200, 300, 400], "desc": "a white mug"}, )"
            R"({"id": "dog_1", "bbox": [500, 500, 900, 950], "desc": "a brown dog"}, )"
            R"({"id": "lamp_1", "bbox": [0, 700, 300, 900], "desc": "a lamp"}])");
}

TEST(Layout, KeepsTheUsersRowsWhereTheAnswerHasNone) {
  const auto laid_out = with_locked_rows("Only words about <cup_1>.", kRows);
  EXPECT_EQ(laid_out.caption, "Only words about <cup_1>.");
  EXPECT_EQ(laid_out.rows, kRows);
}

TEST(Layout, TakesRowsOfEdits) {
  const auto laid_out = with_locked_rows(
      R"(Move <cup_1> next to <new_1> and drop <old_1>. )"
      R"([{"id":"cup_1","from":"ref_image_0","src_bbox":[1,1,2,2],"tgt_bbox":null,)"
      R"("desc":"the cup"},)"
      R"({"id":"new_1","from":"target","src_bbox":null,"tgt_bbox":[10,10,20,20],"desc":"new"},)"
      R"({"id":"old_1","from":"ref_image_0","src_bbox":[10,10,20,20],"tgt_bbox":null,)"
      R"("desc":"old"},)"
      R"({"id":"bad_1","from":"target","src_bbox":[10,10,20,20],"tgt_bbox":null,)"
      R"("desc":"<bad_1>"}])",
      R"([{"id": "cup_1", "from": "ref_image_0", "src_bbox": [100, 100, 200, 200], )"
      R"("tgt_bbox": [500, 500, 600, 600], "desc": "x"}])");
  EXPECT_EQ(laid_out.caption, "Move <cup_1> next to <new_1> and drop <old_1>.");
  EXPECT_EQ(laid_out.rows,
            R"([{"id": "cup_1", "from": "ref_image_0", "src_bbox": [100, 100, 200, 200], )"
            R"("tgt_bbox": [500, 500, 600, 600], "desc": "the cup"}, )"
            R"({"id": "new_1", "from": "target", "src_bbox": null, "tgt_bbox": [10, 10, 20, 20], )"
            R"("desc": "new"}, )"
            R"({"id": "old_1", "from": "ref_image_0", "src_bbox": [10, 10, 20, 20], )"
            R"("tgt_bbox": null, "desc": "old"}])");
}

// What is left is an edit, or no box.
TEST(Layout, DropsABoxThatIsNoneBesideThoseOfAnEdit) {
  const auto rows_with = [](const std::string& bbox) {
    return with_locked_rows(R"(<new_1> and <old_1>. [{"id":"new_1","bbox":)" + bbox +
                                R"(,"from":"target","tgt_bbox":[10,10,20,20],"desc":"new"},)"
                                R"({"id":"old_1","bbox":)" +
                                bbox + R"(,"desc":"old"}])",
                            "[]")
        .rows;
  };
  for (const char* const bbox : {R"(["1", "2", "3", "4"])", R"("all")", "7", "[[1], [2], [3], [4]]",
                                 "[0, 0, 2000, 10]", "{}", "[]"}) {
    EXPECT_EQ(rows_with(bbox), R"([{"id": "new_1", "from": "target", "src_bbox": null, )"
                               R"("tgt_bbox": [10, 10, 20, 20], "desc": "new"}])")
        << bbox;
    const auto row = R"({"id": "a", "from": "target", "tgt_bbox": [10, 10, 20, 20], "desc": "x")";
    EXPECT_TRUE(is_planned_row(parse_json(std::string(row) + "}", "row")));
    const auto with_bbox = row + std::string(R"(, "bbox": )") + bbox + "}";
    EXPECT_FALSE(is_planned_row(parse_json(with_bbox, "row"))) << bbox;
  }
}

}  // namespace braid::net::layout_test
