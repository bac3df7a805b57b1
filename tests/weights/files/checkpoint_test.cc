// Checkpoints: one file or shards; missing and duplicate things are named.
#include "weights/files/checkpoint.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "files.h"

namespace braid::checkpoint_test {

using testing::HasSubstr;
using namespace testing_files;

class CheckpointTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& contents) {
    write_file(folder_ / name, contents);
  }
  void write_index(const std::string& map) {
    write("m.safetensors.index.json", R"({"metadata":{},"weight_map":)" + map + "}");
  }
  std::string refusal() {
    return message_of<std::exception>([&] { Checkpoint::open(folder_.path(), "m"); });
  }
  TemporaryFolder folder_;
};

TEST_F(CheckpointTest, ReadsASingleFileInPlace) {
  write("m.safetensors", float_file({{"a", {2, 2}, {1, 2, 3, 4}}}));
  Tensor view;
  {
    const auto checkpoint = Checkpoint::open(folder_.path(), "m");
    ASSERT_NE(checkpoint.find("a"), nullptr);
    EXPECT_EQ(checkpoint.find("b"), nullptr);
    view = checkpoint.find("a")->view();
    EXPECT_EQ(checkpoint.num_bytes(), 16u);
    EXPECT_EQ(checkpoint.num_parameters(), 4);
  }
  EXPECT_TRUE(at::equal(view, at::tensor({1.f, 2.f, 3.f, 4.f}).view({2, 2})))
      << "the view outlives its checkpoint";
}

TEST_F(CheckpointTest, JoinsShards) {
  write("s1.safetensors", float_file({{"a", {1}, {1}}}));
  write("s2.safetensors", float_file({{"b", {1}, {2}}}));
  write_index(R"({"a":"s1.safetensors","b":"s2.safetensors"})");
  const auto checkpoint = Checkpoint::open(folder_.path(), "m");
  EXPECT_EQ(checkpoint.find("b")->view().item<float>(), 2);
  EXPECT_EQ(checkpoint.tensors().size(), 2u);
}

TEST_F(CheckpointTest, NamesWhatItLooksFor) {
  EXPECT_THAT(refusal(), HasSubstr("neither m.safetensors nor m.safetensors.index.json"));
}

TEST_F(CheckpointTest, NamesAMissingShard) {
  write("s1.safetensors", float_file({{"a", {1}, {1}}}));
  write_index(R"({"a":"s1.safetensors","b":"s2.safetensors"})");
  EXPECT_THAT(refusal(),
              HasSubstr("s2.safetensors, which m.safetensors.index.json names, is missing"));
}

TEST_F(CheckpointTest, NamesATensorThatIsInTwoShards) {
  write("s1.safetensors", float_file({{"a", {1}, {1}}}));
  write("s2.safetensors", float_file({{"a", {1}, {1}}, {"b", {1}, {1}}}));
  write_index(R"({"a":"s1.safetensors","b":"s2.safetensors"})");
  EXPECT_THAT(refusal(), HasSubstr("tensor 'a' is in two shards"));
}

TEST_F(CheckpointTest, NamesATensorThatIsNotInItsShard) {
  write("s1.safetensors", float_file({{"a", {1}, {1}}}));
  write_index(R"({"a":"s1.safetensors","b":"s1.safetensors"})");
  EXPECT_THAT(refusal(), HasSubstr("tensor 'b' is not in s1.safetensors"));
  write("s2.safetensors", float_file({{"b", {1}, {1}}}));
  write_index(R"({"a":"s2.safetensors","b":"s1.safetensors"})");
  EXPECT_THAT(refusal(), HasSubstr("tensor 'a' is not in s2.safetensors")) << "they are exchanged";
}

TEST_F(CheckpointTest, RefusesShardsOutsideItsFolder) {
  for (const char* name : {"../s.safetensors", "/etc/passwd", "..", "a/b"}) {
    write_index(std::string(R"({"a":")") + name + "\"}");
    EXPECT_THAT(refusal(), HasSubstr("without a folder")) << name;
  }
  write_index(R"({"a":7})");
  EXPECT_THAT(refusal(), HasSubstr("should be a file name"));
  write_index("{}");
  EXPECT_THAT(refusal(), HasSubstr("names no shards"));
}

TEST_F(CheckpointTest, TheDtypeIsThatOfMostParameters) {
  const std::string header = R"({"a":{"dtype":"BF16","shape":[4],"data_offsets":[0,8]},)"
                             R"("b":{"dtype":"F32","shape":[3],"data_offsets":[8,20]},)"
                             R"("c":{"dtype":"I64","shape":[9],"data_offsets":[20,92]}})";
  write("m.safetensors", file_of(header, std::string(92, '\0')));
  EXPECT_EQ(Checkpoint::open(folder_.path(), "m").dtype(), at::kBFloat16);
}

TEST_F(CheckpointTest, NamesATypeItCannotRead) {
  const std::string header = R"({"a":{"dtype":"U32","shape":[1],"data_offsets":[0,4]}})";
  write("m.safetensors", file_of(header, std::string(4, '\0')));
  const auto checkpoint = Checkpoint::open(folder_.path(), "m");
  EXPECT_THAT(message_of<std::exception>([&] { checkpoint.find("a")->view(); }),
              HasSubstr("dtype U32"));
}

}  // namespace braid::checkpoint_test
