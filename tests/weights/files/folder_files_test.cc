// Names of files in the folder of a part, as diffusers 0.42 and transformers 5.23 write them.
#include "weights/files/folder_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weights/files.h"
#include "weights/files/checkpoint.h"

namespace braid::folder_files_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace testing_files;

class FolderWeights : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& tensor = "a") const {
    write_file(folder_ / name, float_file({{tensor, {1}, {1}}}));
  }
  std::vector<std::string> tensors(const std::string& stem = "model") const {
    std::vector<std::string> names;
    const auto file = Checkpoint::open(folder_.path(), stem);
    for (const auto& [name, stored] : file.tensors()) names.push_back(name);
    return names;
  }
  // What is said of the choice between files.
  std::string note(const std::string& stem = "model") const {
    const auto note = Checkpoint::open(folder_.path(), stem).note();
    const auto begin = note.find(folder_.path().string());
    return begin == note.npos ? note : note.substr(begin + folder_.path().string().size() + 1);
  }
  std::string refusal() const {
    return message_of([&] { (void)tensors(); });
  }
  const TemporaryFolder folder_;
};

TEST_F(FolderWeights, MayBeAVariant) {
  put("model.fp16.safetensors", "half");
  EXPECT_THAT(tensors(), ElementsAre("half"));
  put("model.bf16.safetensors", "brain");
  EXPECT_THAT(tensors(), ElementsAre("brain")) << "of the wider range";
  put("model.safetensors", "plain");
  EXPECT_THAT(tensors(), ElementsAre("plain"));
}

// Averaged weights ("ema") are for inference, as in diffusers' conversions of Stable Diffusion.
TEST_F(FolderWeights, OfSeveralVariantsSayWhichIsRead) {
  put("model.non_ema.safetensors", "trained");
  EXPECT_EQ(note(), "") << "the only one";
  put("model.ema.safetensors", "averaged");
  EXPECT_THAT(tensors(), ElementsAre("averaged"));
  EXPECT_EQ(note(), "model.ema.safetensors; model.non_ema.safetensors beside it is left alone");
  put("model.fp16.safetensors", "half");
  put("model.Q8_0.gguf", "not opened");
  EXPECT_THAT(tensors(), ElementsAre("half"));
  EXPECT_EQ(note(),
            "model.fp16.safetensors; model.ema.safetensors, model.non_ema.safetensors, "
            "model.Q8_0.gguf beside it are left alone");
  put("model.safetensors", "plain");
  EXPECT_EQ(note(), "") << "what diffusers reads unless it is asked for a variant";
}

TEST_F(FolderWeights, OfSeveralVariantsInShardsSayWhichIsRead) {
  for (const char* const variant : {"fp16", "bf16"})
    for (const char* const number : {"1", "2"})
      put(std::string("model.") + variant + "-0000" + number + "-of-00002.safetensors",
          std::string(variant) + number);
  EXPECT_THAT(tensors(), ElementsAre("bf161", "bf162"));
  EXPECT_EQ(note(),
            "model.bf16-00001-of-00002.safetensors; model.fp16-00001-of-00002.safetensors beside "
            "it is left alone");
  for (const std::string variant : {"fp16", "bf16"}) {
    const auto entry = [&](const std::string& number) {
      return '"' + variant + number + R"(":"model.)" + variant + "-0000" + number +
             R"(-of-00002.safetensors")";
    };
    write_file(folder_ / ("model.safetensors.index." + variant + ".json"),
               R"({"weight_map":{)" + entry("1") + "," + entry("2") + "}}");
  }
  EXPECT_THAT(tensors(), ElementsAre("bf161", "bf162"));
  EXPECT_EQ(note(),
            "model.safetensors.index.bf16.json; model.safetensors.index.fp16.json beside it is "
            "left alone");
}

TEST_F(FolderWeights, MayBeShardsOfAVariant) {
  put("diffusion_pytorch_model.fp16-00001-of-00002.safetensors", "a");
  put("diffusion_pytorch_model.fp16-00002-of-00002.safetensors", "b");
  const auto both = ElementsAre("a", "b");
  EXPECT_THAT(tensors("diffusion_pytorch_model"), both) << "without an index";
  write_file(folder_ / "diffusion_pytorch_model.safetensors.index.fp16.json",
             R"({"weight_map":{"a":"diffusion_pytorch_model.fp16-00001-of-00002.safetensors",
                 "b":"diffusion_pytorch_model.fp16-00002-of-00002.safetensors"}})");
  EXPECT_THAT(tensors("diffusion_pytorch_model"), both);
}

TEST_F(FolderWeights, MayBeShardsWithoutAnIndexIfAllAreThere) {
  put("model-00001-of-00003.safetensors", "a");
  put("model-00003-of-00003.safetensors", "c");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("2 of 3 shards"), HasSubstr("missing")));
  put("model-00002-of-00003.safetensors", "b");
  EXPECT_THAT(tensors(), ElementsAre("a", "b", "c"));
}

TEST_F(FolderWeights, MayHaveAnotherNameIfTheyAreAlone) {
  put("anything.sft", "a");
  EXPECT_THAT(tensors(), ElementsAre("a"));
  put("model.sft", "b");
  EXPECT_THAT(tensors(), ElementsAre("b"));
}

// macOS writes them on disks of other systems.
TEST_F(FolderWeights, AreNotFilesOfAttributes) {
  put("anything.safetensors", "a");
  for (const char* const name :
       {"._anything.safetensors", "._anything.gguf", "._pytorch_model.bin"})
    write_file(folder_ / name, "AppleDouble");
  EXPECT_THAT(tensors(), ElementsAre("a"));
  EXPECT_THAT(weights_lying_in(folder_.path()), ElementsAre(folder_ / "anything.safetensors"));
  put("another.safetensors", "b");
  EXPECT_THAT(refusal(), HasSubstr("it has another.safetensors, anything.safetensors, one"));
}

TEST_F(FolderWeights, OfOtherFormatsAreNamed) {
  EXPECT_THAT(refusal(), HasSubstr("neither model.safetensors nor"));
  write_file(folder_ / "pytorch_model.bin", "PK");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("pytorch_model.bin, a pickle of PyTorch's"),
                               HasSubstr("it reads .safetensors and .gguf")));
  std::filesystem::remove(folder_ / "pytorch_model.bin");
  write_file(folder_ / "model.safetensors.part", "");
  EXPECT_THAT(refusal(), HasSubstr("a download that was not completed"));
  put("one.safetensors");
  put("two.safetensors");
  std::filesystem::remove(folder_ / "model.safetensors.part");
  EXPECT_THAT(refusal(), HasSubstr("it has one.safetensors, two.safetensors"));
}

TEST(WeightsNames, HaveAnyCase) {
  for (const char* const name : {"a.safetensors", "a.sft", "a.GGUF", "a.SafeTensors"})
    EXPECT_TRUE(is_weights_name(name)) << name;
  EXPECT_FALSE(is_weights_name("a.bin"));
  EXPECT_FALSE(is_safetensors_name("a.gguf"));
  for (const char* const name : {"._a.safetensors", "x/._a.gguf", "._a.sft"})
    EXPECT_FALSE(is_weights_name(name)) << name;
  EXPECT_FALSE(is_safetensors_name("x/._a.safetensors"));
  for (const char* const name : {".x/a.gguf", "._x/a.gguf", ".a.sft"})
    EXPECT_TRUE(is_weights_name(name)) << name;
}

// Not what stands at the place of a header's length.
TEST(StrangeFiles, AreNamedAsWeights) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& name, const std::string& bytes) {
    write_file(folder / name, bytes);
    return message_of([&] { (void)Checkpoint::open_file(folder / name); });
  };
  EXPECT_THAT(refusal("a.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0"),
              HasSubstr("Git LFS pointer"));
  EXPECT_THAT(refusal("a.gguf", "<!doctype html><html>"), HasSubstr("web page"));
  EXPECT_THAT(refusal("a.ckpt", std::string("PK\3\4\0\0\10\10\0\0", 10) + std::string(90, '\0')),
              HasSubstr("pickle"));
  EXPECT_THAT(refusal("a.safetensors", "Access to this model is restricted."),
              HasSubstr("access token"));
  EXPECT_THAT(refusal("a.safetensors.part", float_file({{"a", {1}, {1}}})),
              HasSubstr("not completed"));
  const auto whole = float_file({{"a", {4}, {1, 2, 3, 4}}});
  EXPECT_THAT(refusal("a.safetensors", whole.substr(0, whole.size() - 4)),
              HasSubstr("download was not completed"));
}

}  // namespace braid::folder_files_test
