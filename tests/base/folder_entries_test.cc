// Folders that can be read, and those that cannot.
#include "base/folder_entries.h"

#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "base/hub_cache.h"
#include "temporary_folder.h"
#include "unreadable_folder.h"

namespace braid::folder_entries_test {

class FolderEntries : public testing::Test {
 protected:
  FolderEntries() {
    for (const char* const name : {"a", "b", "c"}) write_file(folder_ / name, "");
  }
  const TemporaryFolder folder_;
  std::error_code failure_;
};

TEST_F(FolderEntries, AreThoseOfTheFolderAlone) {
  std::filesystem::create_directories(folder_ / "d/e");
  std::set<std::string> names;
  for (const auto& entry : entries_in(folder_.path(), failure_))
    names.insert(entry.path().lexically_relative(folder_.path()));
  EXPECT_EQ(names, std::set<std::string>({"a", "b", "c", "d"}));
  EXPECT_FALSE(failure_);
  EXPECT_TRUE(entries_in(folder_ / "d/e", failure_).empty());
  EXPECT_FALSE(failure_);
}

TEST_F(FolderEntries, OfOneThatIsMissingAreNone) {
  EXPECT_TRUE(entries_in(folder_ / "missing", failure_).empty());
  EXPECT_EQ(failure_, std::errc::no_such_file_or_directory);
  EXPECT_FALSE(entries_in(folder_.path(), failure_).empty());
  EXPECT_FALSE(failure_) << "it is that of the last call";
}

TEST_F(FolderEntries, AreThoseBeforeTheDiskFailed) {
  const UnreadableFolders disk(2);
  EXPECT_LT(entries_in(folder_.path(), failure_).size(), 3u);
  EXPECT_EQ(failure_, std::errc::io_error);
}

TEST_F(FolderEntries, OfACacheOfModelsMayBeMissing) {
  std::filesystem::create_directories(folder_ / "models--org--name/snapshots/0123abcd");
  ASSERT_EQ(revisions_in_hub(folder_.path()).size(), 1u);
  const UnreadableFolders disk(1);
  for (const auto& revision : revisions_in_hub(folder_.path()))
    EXPECT_NE(revision.unlisted, "") << revision.name;
}

}  // namespace braid::folder_entries_test
