// File names of pictures, and the texts written into them.
#include "app/files/output_files.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "app/files/picture_text.h"
#include "braid/error.h"

namespace braid::output_files_test {

TEST(OutputFiles, NumbersAreAsLongAsTheLast) {
  EXPECT_EQ(OutputFiles("x.png", 1).of_picture(0), "x.png");
  EXPECT_EQ(OutputFiles("x.png", 2).of_picture(1), "x-001.png");
  EXPECT_EQ(OutputFiles("x.png", 1001).of_picture(7), "x-0007.png");
  EXPECT_EQ(OutputFiles("/tmp/a.b.png", 2).of_picture(0), "/tmp/a.b-000.png");
  EXPECT_EQ(OutputFiles("/tmp", 2).of_picture(0), "/tmp/braid-000.png");
  EXPECT_EQ(OutputFiles("x", 2).of_picture(0), "x-000");
}

TEST(OutputFiles, OtherFormatsAreRefused) {
  EXPECT_THROW(OutputFiles("x.JPG", 1), InputError);
  EXPECT_THROW(OutputFiles("x.webp", 1), InputError);
  EXPECT_EQ(OutputFiles("x.v2", 1).of_picture(0), "x.v2");
}

TEST(PictureText, DecimalsHaveTheFewestDigitsThatGiveThemBack) {
  EXPECT_EQ(decimal(3.5), "3.5");
  EXPECT_EQ(decimal(4), "4");
  EXPECT_EQ(decimal(0.1), "0.1");
}

// A server with Redux also makes pictures without it.
TEST(PictureText, NamesReduxWhereItWasUsed) {
  PipelineOptions options;
  options.model = "models/demo";
  options.redux = "models/redux";
  Settings settings;
  const auto names_it = [&] {
    const auto text = text_of_picture({}, Prompt{"a", "", {}, {}}, settings, options, {});
    return std::ranges::any_of(text, [](const auto& entry) { return entry.first == "redux"; });
  };
  EXPECT_FALSE(names_it());
  settings.reference_scales = {1};
  EXPECT_TRUE(names_it());
}

}  // namespace braid::output_files_test
