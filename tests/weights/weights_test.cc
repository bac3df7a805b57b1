// Weights: used in place if nothing changes, otherwise concatenated and converted, and complete.
#include "weights/weights.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "files.h"
#include "weights/paging/cpu_device.h"

namespace braid::weights_test {

using testing::HasSubstr;
using namespace testing_files;

class WeightsTest : public testing::Test {
 protected:
  Weights open(const std::vector<FloatTensor>& tensors, const Names& names = {},
               const LoadOptions& options = {}, int pad = 0) {
    write_file(folder_ / "m.safetensors", float_file(tensors, pad));
    auto checkpoint = Checkpoint::open(folder_.path(), "m");
    if (!tensors.empty()) mapped_ = checkpoint.find(tensors[0].name)->view();
    return {std::move(checkpoint), names, options};
  }
  TemporaryFolder folder_;
  Tensor mapped_;  // the first tensor, in the mapping
};

TEST_F(WeightsTest, UsesTheMappedFileInPlace) {
  const auto w = open({{"a.weight", {2, 2}, {1, 2, 3, 4}}});
  const auto t = (w / "a").tensor("weight", {2, 2});
  EXPECT_EQ(t.const_data_ptr(), mapped_.const_data_ptr());
}

TEST_F(WeightsTest, CopiesWhatIsNotAligned) {
  const auto w = open({{"a", {2}, {1, 2}}}, {}, {}, /*pad=*/1);
  const auto t = w.tensor("a", {2});
  EXPECT_NE(t.const_data_ptr(), mapped_.const_data_ptr());
  EXPECT_TRUE(at::equal(t, at::tensor({1.f, 2.f})));
}

TEST_F(WeightsTest, ConvertsToTheDtypeOfTheLoad) {
  const auto w = open({{"a", {2}, {1, 1.001f}}}, {}, {.dtype = at::kBFloat16});
  EXPECT_TRUE(at::equal(w.tensor("a", {2}), at::tensor({1.f, 1.f}).to(at::kBFloat16)));
}

// Only some rows of a table are needed: it stays as stored, and they are converted.
TEST_F(WeightsTest, LeavesATableWhereItIsStored) {
  const auto w = open({{"a", {2, 1}, {1, 1.001f}}}, {}, {.dtype = at::kBFloat16});
  const auto table = w.table("a", {2, 1});
  EXPECT_EQ(table.const_data_ptr(), mapped_.const_data_ptr());
  EXPECT_EQ(table.scalar_type(), at::kFloat);
  w.finish();
}

TEST_F(WeightsTest, KeepsATableOutOfPages) {
  const auto pages =
      std::make_shared<Pages>(std::make_shared<CpuPageDevice>(), at::kCPU, PageOptions());
  const auto w =
      open({{"a", {2, 1}, {1, 2}}}, {}, {.paging = {.pages = pages, .level = PageLevel::kModel}});
  EXPECT_EQ(w.table("a", {2, 1}).const_data_ptr(), mapped_.const_data_ptr());
}

TEST_F(WeightsTest, CopiesATableThatIsNotAligned) {
  const auto w = open({{"a", {2, 1}, {1, 1.001f}}}, {}, {.dtype = at::kBFloat16}, /*pad=*/1);
  const auto table = w.table("a", {2, 1});
  EXPECT_NE(table.const_data_ptr(), mapped_.const_data_ptr());
  EXPECT_TRUE(at::equal(table, at::ones({2, 1}, at::kBFloat16)));
}

TEST_F(WeightsTest, RefusesATableOfAnotherShape) {
  const auto w = open({{"a", {2, 1}, {1, 2}}});
  EXPECT_THAT(message_of<std::exception>([&] { w.table("a", {3, 1}); }), HasSubstr("'a'"));
}

TEST_F(WeightsTest, AScopeMayLoadInAnotherDtype) {
  const auto w = open({{"a", {1}, {1}}, {"b", {1}, {1}}}, {}, {.dtype = at::kHalf});
  EXPECT_EQ(w.tensor("a", {1}).scalar_type(), at::kHalf);
  EXPECT_EQ(w.as(at::kFloat).tensor("b", {1}).scalar_type(), at::kFloat);
}

TEST_F(WeightsTest, JoinsRowsInTheOrderOfTheTable) {
  const auto w = open({{"q.weight", {1, 2}, {1, 2}}, {"k.weight", {2, 2}, {3, 4, 5, 6}}},
                      {.spellings = {{"qk", {"q", "k"}}}});
  const auto t = (w / "qk").tensor("weight", {3, 2});
  EXPECT_TRUE(at::equal(t, at::arange(1, 7, at::kFloat).view({3, 2})));
  w.finish();
}

TEST_F(WeightsTest, SwapsHalves) {
  const auto w =
      open({{"m", {4}, {1, 2, 3, 4}}}, {.spellings = {{"n", {"m"}, {RowOrder::kSwapHalves}}}});
  EXPECT_TRUE(at::equal(w.tensor("n", {4}), at::tensor({3.f, 4.f, 1.f, 2.f})));
}

TEST_F(WeightsTest, UnpairsTheRowsOfHeads) {
  const auto w = open({{"m", {8}, {0, 1, 2, 3, 4, 5, 6, 7}}},
                      {.spellings = {{"n", {"m"}, {RowOrder::kDeinterleave, 4}}}});
  EXPECT_TRUE(at::equal(w.tensor("n", {8}), at::tensor({0.f, 2.f, 1.f, 3.f, 4.f, 6.f, 5.f, 7.f})));
}

TEST_F(WeightsTest, TakesTheFirstAlternativeThatIsThere) {
  const auto w = open({{"embed", {1}, {7}}}, {.spellings = {{"s", {"shared"}}, {"s", {"embed"}}}});
  EXPECT_EQ(w.tensor("s", {1}).item<float>(), 7);
}

TEST_F(WeightsTest, NamesTheMissingTensorAsTheFileSpellsIt) {
  const auto w = open({{"q.weight", {1, 2}, {1, 2}}}, {.spellings = {{"qk", {"q", "k"}}}});
  EXPECT_THAT(message_of<std::exception>([&] {
                (w / "qk").tensor("weight", {3, 2});
              }),
              HasSubstr("m.safetensors has no tensor 'k.weight'"));
}

TEST_F(WeightsTest, NamesAMisshapenTensorAndBothShapes) {
  const auto w = open({{"a", {2, 3}, std::vector<float>(6)}, {"b", {1, 2}, {1, 2}}},
                      {.spellings = {{"ab", {"a", "b"}}, {"aa", {"a"}}, {"bb", {"b", "b"}}}});
  EXPECT_THAT(message_of<std::exception>([&] {
                w.tensor("aa", {3, 2});
              }),
              HasSubstr("tensor 'a' should have the shape [3, 2], it has [2, 3]"));
  EXPECT_THAT(message_of<std::exception>([&] { w.tensor("ab", {3, 2}); }), HasSubstr("'a'"));
}

TEST_F(WeightsTest, NamesPartsThatDoNotAddUp) {
  const auto w =
      open({{"a", {2, 1}, {1, 2}}, {"b", {1, 1}, {1}}}, {.spellings = {{"ab", {"a", "b"}}}});
  EXPECT_THAT(message_of<std::exception>([&] {
                w.tensor("ab", {4, 1});
              }),
              HasSubstr("should have 4 rows together, they have 3"));
}

TEST_F(WeightsTest, RefusesNumbersThatAreNotFloatingPoint) {
  write_file(folder_ / "m.safetensors",
             file_of(R"({"a":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}})", "1234"));
  const Weights w(Checkpoint::open(folder_.path(), "m"), {}, {});
  EXPECT_THAT(message_of<std::exception>([&] { w.tensor("a", {1}); }), HasSubstr("floating-point"));
}

TEST_F(WeightsTest, EveryTensorIsUsedExactlyOnce) {
  const auto w =
      open({{"a", {1}, {1}}, {"b", {1}, {1}}, {"pos.ids", {1}, {1}}}, {.ignored = {"*.ids"}});
  w.tensor("a", {1});
  EXPECT_THAT(message_of<std::exception>([&] { w.finish(); }),
              HasSubstr("holds 1 tensor that the model does not have: 'b'"));
  EXPECT_THAT(message_of<std::exception>([&] { w.tensor("a", {1}); }), HasSubstr("used twice"));
  w.tensor("b", {1});
  EXPECT_NO_THROW(w.finish());
}

TEST_F(WeightsTest, WhatIsLeftUnusedCountsAsLoaded) {
  std::int64_t told = 0;
  const auto w =
      open({{"a", {1}, {1}}, {"head.a", {2}, {1, 2}}, {"head.b.c", {4}, {1, 2, 3, 4}}},
           {.ignored = {"head.**"}}, {.on_bytes = [&](std::int64_t bytes) { told += bytes; }});
  w.tensor("a", {1});
  w.finish();
  w.finish();
  EXPECT_EQ(told, 7 * 4);
}

TEST_F(WeightsTest, ASkippedScopeIsNotMissed) {
  const auto w = open({{"encoder.a", {1}, {1}}, {"encoderx", {1}, {1}}});
  (w / "encoder").skip();
  EXPECT_THAT(message_of<std::exception>([&] { w.finish(); }), HasSubstr("'encoderx'"));
}

TEST_F(WeightsTest, ASkippedScopeMayHaveOtherNamesInTheFile) {
  const Names names{.spellings = {{"quant", {"conv1"}}, {"half.in", {"stem"}}}};
  const auto w = open({{"conv1.a", {1}, {1}}, {"stem.a", {1}, {1}}, {"conv10.a", {1}, {1}}}, names);
  (w / "quant").skip();
  (w / "half").skip();
  const auto left = message_of<std::exception>([&] { w.finish(); });
  EXPECT_THAT(left, HasSubstr("1 tensor that the model does not have: 'conv10.a'"));
}

TEST_F(WeightsTest, WhatIsUnreadIsStillCheckedAndCounted) {
  std::int64_t told = 0;
  const auto w = open({{"here.a", {2}, {1, 2}}, {"there.a", {2}, {1, 2}}}, {},
                      {.on_bytes = [&](std::int64_t bytes) { told += bytes; }});
  const auto there = (w / "there").unread();
  EXPECT_THAT(message_of<std::exception>([&] { there.tensor("b", {2}); }),
              HasSubstr("no tensor 'there.b'"));
  EXPECT_FALSE(there.tensor("a", {2}).defined());
  EXPECT_EQ(told, 0);
  EXPECT_THAT(message_of<std::exception>([&] { there.tensor("a", {2}); }), HasSubstr("used twice"));
  EXPECT_THAT(message_of<std::exception>([&] { w.finish(); }), HasSubstr("'here.a'"));
  (w / "here").tensor("a", {2});
  EXPECT_EQ(told, 8);
  EXPECT_NO_THROW(w.finish());
}

TEST_F(WeightsTest, AMisshapenUnreadTensorIsNamed) {
  const auto w = open({{"a", {2}, {1, 2}}});
  EXPECT_THAT(message_of<std::exception>([&] { w.unread().tensor("a", {3}); }),
              HasSubstr("tensor 'a'"));
}

TEST_F(WeightsTest, TellsEveryByteOnce) {
  std::int64_t told = 0;
  const auto w = open({{"a", {2}, {1, 2}}, {"b.x", {1}, {1}}}, {},
                      {.on_bytes = [&](std::int64_t bytes) { told += bytes; }});
  w.tensor("a", {2});
  (w / "b").skip();
  EXPECT_EQ(told, 12);
}

TEST_F(WeightsTest, CountsWhatWasReadAndNotWhatWasLeft) {
  BytesRead read;
  const auto w = open({{"a", {2}, {1, 2}}, {"b", {2, 2}, {1, 2, 3, 4}}, {"c.x", {1}, {1}}}, {},
                      {.on_read = [&](const BytesRead& more) { read += more; }});
  w.tensor("a", {2});                       // in place
  w.as(at::kBFloat16).tensor("b", {2, 2});  // converted
  (w / "c").skip();
  EXPECT_EQ(read, (BytesRead{.all = 24, .strided = 0}));
}

}  // namespace braid::weights_test
