// LoRAs in a folder by name; and folders whose disk fails, which cost no more than what is in them.
#include "app/files/lora_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "app/files/output_files.h"
#include "base/error.h"
#include "base/file.h"
#include "message_of.h"
#include "pipeline/memory/temporary_pages.h"
#include "temporary_folder.h"
#include "unreadable_folder.h"

namespace braid::lora_folder_test {

using testing::AllOf;
using testing::HasSubstr;

TEST(LoraFolder, NamesItsFiles) {
  const TemporaryFolder folder;
  for (const char* const name : {"ink.safetensors", "notes.txt", "\xff.safetensors"})
    write_file(folder / name, "");
  std::filesystem::create_directory(folder / "folder.safetensors");
  std::filesystem::create_symlink("nowhere", folder / "dangling.safetensors");
  using Files = std::map<std::string, std::filesystem::path>;
  EXPECT_EQ(loras_in(folder.path()), Files({{"ink", folder / "ink.safetensors"}}));
}

TEST(LoraFolder, IsToldIfItCannotBeRead) {
  const TemporaryFolder folder;
  for (const char* const name : {"a.safetensors", "b.safetensors"}) write_file(folder / name, "");
  EXPECT_THAT(message_of<Error>([&] { (void)loras_in(folder / "gone"); }),
              AllOf(HasSubstr("cannot read the folder of LoRAs"), HasSubstr("/gone"),
                    HasSubstr("No such file or directory")));
  const UnreadableFolders disk(3);
  EXPECT_THAT(message_of<Error>([&] { (void)loras_in(folder.path()); }),
              HasSubstr("Input/output error"));
  EXPECT_THROW((void)loras_in(folder.path()), Error);
}

TEST(UnreadableFolder, OfPicturesKeepsThoseThatAreThere) {
  const TemporaryFolder folder;
  for (const char* const name : {"braid-000.png", "braid-001.png"})
    write_file(folder / name, "old");
  const UnreadableFolders disk(1);
  OutputFiles files({.path = folder.path()}, 2);
  EXPECT_EQ(files.write(0, "new"), folder / "braid-002.png");
  EXPECT_EQ(files.write(1, "new"), folder / "braid-003.png");
  EXPECT_EQ(read_file(folder / "braid-001.png"), "old");
}

TEST(UnreadableFolder, OfTemporaryFilesCanHoldNewOnes) {
  std::optional<TemporaryPages> pages;
  {
    const UnreadableFolders disk(1);
    pages.emplace();
  }
  EXPECT_TRUE(std::filesystem::is_directory(pages->folder()));
}

}  // namespace braid::lora_folder_test
