// What a run writes is not what it reads.
#include "app/files/files_apart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "app/files/input_bytes.h"
#include "base/file.h"
#include "message_of.h"
#include "temporary_folder.h"

namespace braid::files_apart_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FilesApart : public testing::Test {
 protected:
  FilesApart() {
    fs::create_directories(folder_ / "model/part");
    for (const auto* const name : {"a", "b", "model/part/w.safetensors", "model/look.png"})
      write_file(folder_ / name, name);
  }
  std::string refusal(const std::vector<NamedFile>& written,
                      const std::vector<NamedFile>& read = {}) const {
    return message_of([&] { require_apart(written, read); });
  }
  const TemporaryFolder folder_;
  const fs::path a_ = folder_ / "a", b_ = folder_ / "b";
};

TEST_F(FilesApart, AreThoseOfEveryFlag) {
  GenerateFlags flags;
  flags.prompt_file = "1";
  flags.boxes = "2";
  flags.enhancer.system = "3";
  flags.enhancer.key_file = "4";
  flags.latents = "5";
  flags.pictures.init = "6";
  flags.pictures.mask = "7";
  flags.pictures.references = {"8", "9"};
  flags.pictures.controls = {"10", "-"};
  PipelineOptions options;
  options.model = "11";
  options.components = "12";
  options.text_encoder_files = {"13"};
  options.vae_file = "14";
  options.controlnets = {"15"};
  options.redux = "16";
  options.adapters = {{.file = "17"}};
  const auto files = files_read(flags, options);
  for (int i = 1; i <= 17; ++i)
    EXPECT_EQ(std::ranges::count(files, fs::path(std::to_string(i)), &NamedFile::path), 1) << i;
  EXPECT_EQ(files.size(), 17u) << "standard input is no file";
}

TEST_F(FilesApart, MayBeOthersOrNotThereYet) {
  EXPECT_EQ(refusal({{"--output", a_}, {"--dump", b_}}, {{"--mask", folder_ / "c"}}), "");
  EXPECT_EQ(refusal({{"--output", folder_ / "c"}}, {{"--model", folder_.path()}}), "");
  EXPECT_EQ(
      refusal({{"--output", "/dev/null"}, {"--dump", "/dev/null"}}, {{"--mask", "/dev/null"}}),
      "--dump and --output are the same file, /dev/null");
  EXPECT_EQ(refusal({{"--output", "/dev/null"}}, {{"--prompt-file", "/dev/null"}}), "");
}

TEST_F(FilesApart, AreRefusedByAllNamesOfAFile) {
  fs::create_symlink("a", folder_ / "link");
  fs::create_hard_link(a_, folder_ / "hard");
  for (const auto& name : {a_, folder_ / "link", folder_ / "hard", folder_ / "model/../a"}) {
    EXPECT_EQ(refusal({{"--output", name}}, {{"--init", b_}, {"--mask", a_}}),
              "--output " + name.string() + " would replace " + a_.string() +
                  ", which --mask reads: give another name");
    EXPECT_THAT(refusal({{"--output", a_}, {"--dump", name}}), HasSubstr("are the same file"));
  }
  fs::create_symlink("not there", folder_ / "early");
  EXPECT_THAT(refusal({{"--output", folder_ / "not there"}, {"--dump", folder_ / "early"}}),
              HasSubstr("--dump and --output are the same file"));
}

TEST_F(FilesApart, AreRefusedInAModelsFolder) {
  const auto weights = folder_ / "model/part/w.safetensors";
  const std::vector<NamedFile> model = {{"--model", folder_ / "model"}};
  EXPECT_THAT(refusal({{"--dump", weights}}, model), HasSubstr("which --model reads"));
  EXPECT_EQ(refusal({{"--output", folder_ / "model/look.png"}}, model), "") << "no part of it";
  fs::create_directory(folder_ / "linked");
  fs::create_directory_symlink(folder_ / "model/part", folder_ / "linked/part");
  fs::create_directory_symlink("..", folder_ / "linked/circle");
  EXPECT_THAT(refusal({{"--dump", weights}}, {{"--components", folder_ / "linked"}}),
              HasSubstr("which --components reads"));
}

// README says that what --output names is replaced.
TEST_F(FilesApart, ThePictureThatIsStartedFromMayBeReplaced) {
  EXPECT_EQ(refusal({{"--output", a_}}, {{"--init", a_}}), "");
  EXPECT_THAT(refusal({{"--dump", a_}}, {{"--init", a_}}), HasSubstr("which --init reads"));
  EXPECT_THAT(refusal({{"--output", a_}}, {{"--init", b_}, {"--reference", a_}}),
              HasSubstr("which --reference reads"));
}

TEST(InputBytes, AreOfFilesAndNotOfAddresses) {
  const TemporaryFolder folder;
  write_file(folder / "a", "it");
  EXPECT_EQ(read_input("--init", folder / "a"), "it");
  EXPECT_EQ(message_of([] { read_input("--init", "https://host/a.png"); }),
            "--init should be a file, https://host/a.png is an address: download it first");
}

TEST(InputBytes, OfStandardInputAreReadOnce) {
  GenerateFlags flags;
  flags.prompt_file = "-";
  EXPECT_NO_THROW(require_one_reader_of_standard_input(flags));
  flags.pictures.references = {"a.png", "-"};
  EXPECT_THAT(message_of([&] { require_one_reader_of_standard_input(flags); }),
              HasSubstr("--prompt-file and --reference both read standard input"));
}

}  // namespace braid::files_apart_test
