// Checkpoints: one file or shards; missing and duplicate things are named.
#include "weights/files/checkpoint.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "files.h"
#include "weights/weights.h"

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
  write("s2.safetensors", float_file({{"b", {1}, {1}}}));
  write_index(R"({"a":"s2.safetensors","b":"s1.safetensors"})");
  EXPECT_THAT(refusal(), HasSubstr("tensor 'a' is not in s2.safetensors")) << "they are exchanged";
}

// Saving libraries list a vocabulary's head that is tied to another tensor, and leave it out.
TEST_F(CheckpointTest, MissesWhatNoShardHasOnlyIfItIsNeeded) {
  write("s1.safetensors", float_file({{"p.a", {1}, {1}}}));
  write_index(R"({"p.a":"s1.safetensors","p.b.c":"s1.safetensors"})");
  const auto refused = [&](const std::vector<std::string>& asked, const Names& names) {
    return message_of<std::exception>([&] {
      const Weights w(Checkpoint::open(folder_.path(), "m").part("p."), names, {});
      for (const auto& name : asked) (void)w.tensor(name, {1});
      w.finish();
    });
  };
  const auto missing = HasSubstr("m.safetensors.index.json: tensor 'b.c' is not in s1.safetensors");
  EXPECT_EQ(refused({"a"}, {.ignored = {"b.c"}}), "");
  EXPECT_THAT(refused({"a"}, {}), missing);
  EXPECT_THAT(refused({"a", "b.c"}, {.ignored = {"b.c"}}), missing);
  const Weights w(Checkpoint::open(folder_.path(), "m").part("p."), {}, {});
  (void)w.tensor("a", {1});
  (w / "b").skip();
  EXPECT_NO_THROW(w.finish());
  EXPECT_EQ(Checkpoint::open(folder_.path(), "m").without({"p.b"}).absent().size(), 0u);
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

// Buffers of other types are in many files, and most are needed by nobody.
TEST_F(CheckpointTest, ReadsFilesWithTypesThatItCannotComputeWith) {
  const std::string header = R"({"a":{"dtype":"C64","shape":[2],"data_offsets":[0,16]},)"
                             R"("b":{"dtype":"U16","shape":[2],"data_offsets":[16,20]},)"
                             R"("c":{"dtype":"F16","shape":[2],"data_offsets":[20,24]},)"
                             R"("d":{"dtype":"F8_E4M3FNUZ","shape":[2],"data_offsets":[24,26]}})";
  write("m.safetensors", file_of(header, std::string(26, '\0')));
  const auto checkpoint = Checkpoint::open(folder_.path(), "m");
  EXPECT_EQ(checkpoint.dtype(), at::kHalf);
  EXPECT_FALSE(checkpoint.find("a")->is_readable());
  EXPECT_TRUE(checkpoint.find("c")->is_readable());
  const auto refused = [&](const std::string& name) {
    const Weights w(checkpoint, {.ignored = {"a", "b", "d"}}, {});
    return message_of<std::exception>([&] {
      (void)w.tensor(name, {2});
      w.finish();
    });
  };
  EXPECT_EQ(refused("c"), "");
  EXPECT_THAT(refused("a"), HasSubstr("tensor 'a' has the dtype C64, which Braid cannot read"));
  EXPECT_THAT(refused("d"), HasSubstr("dtype F8_E4M3FNUZ"));
}

// Their bytes would be taken for numbers.
TEST_F(CheckpointTest, HasNoViewsOfCodes) {
  const std::string header = R"({"a.weight":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[4,6]},)"
                             R"("a.weight_scale":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})";
  write("m.safetensors", file_of(header, std::string(6, '\0')));
  const auto checkpoint = Checkpoint::open(folder_.path(), "m");
  EXPECT_THAT(message_of<std::exception>([&] { checkpoint.find("a.weight")->view(); }),
              HasSubstr("'a.weight' is coded"));
  EXPECT_EQ(checkpoint.find("a.weight")->stored_view().scalar_type(), at::kFloat8_e4m3fn);
}

}  // namespace braid::checkpoint_test
