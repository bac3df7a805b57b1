// Files: mapped reads, bounded reads, writes that leave the old file or the whole new one.
#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/error.h"
#include "message_of.h"

namespace braid::file_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

class File : public testing::Test {
 protected:
  File() : folder_(fs::path(testing::TempDir()) / ("braid_file_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~File() override { fs::remove_all(folder_); }
  int count_of_files() const {
    return int(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

TEST_F(File, IsReadBackAsWritten) {
  const auto path = folder_ / "a";
  write_file(path, "first");
  write_file(path, std::string("sec\0nd", 6));
  EXPECT_EQ(read_file(path), std::string("sec\0nd", 6));
  EXPECT_EQ(count_of_files(), 1);
}

TEST_F(File, WrittenFilesHaveTheModeThatTheUmaskGives) {
  const auto path = folder_ / "a";
  const auto before = ::umask(022);
  write_file(path, "x");
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0644u);
}

TEST_F(File, AWriteThatFailsLeavesTheOldFileAndNoOther) {
  const auto target = folder_ / "taken";
  fs::create_directories(target / "inside");
  EXPECT_THAT(message_of<std::exception>([&] { write_file(target, "x"); }),
              HasSubstr("is a directory"));
  EXPECT_EQ(count_of_files(), 1);
  EXPECT_THAT(message_of<std::exception>([&] { write_file(folder_ / "no" / "such", "x"); }),
              HasSubstr("No such file or directory"));
}

TEST_F(File, ALinkStaysAndWhatItLeadsToIsReplaced) {
  write_file(folder_ / "a", "old");
  fs::create_symlink("a", folder_ / "link");
  write_file(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_file(folder_ / "a"), "new");
  EXPECT_EQ(count_of_files(), 2);
}

TEST_F(File, DevicesAreWrittenToAndNotReplaced) {
  write_file("/dev/null", "x");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THAT(message_of<std::exception>([] { write_file("/dev/full", "x"); }),
              HasSubstr("No space left"));
}

TEST_F(File, CanBeAskedForBeforeThereIsAnythingToWrite) {
  check_can_write(folder_ / "a");
  EXPECT_EQ(count_of_files(), 0);
  write_file(folder_ / "a", "x");
  check_can_write(folder_ / "a");
  EXPECT_EQ(read_file(folder_ / "a"), "x");
  EXPECT_EQ(count_of_files(), 1);
  EXPECT_THAT(message_of<std::exception>([&] { check_can_write(folder_ / "a" / "b"); }),
              HasSubstr("Not a directory"));
  EXPECT_THAT(message_of<std::exception>([&] { check_can_write(folder_); }),
              HasSubstr("is a directory"));
  EXPECT_THAT(message_of<std::exception>([] { check_can_write("/proc/braid"); }),
              HasSubstr("cannot write"));
  check_can_write("/dev/null");
}

TEST_F(File, LeavesNothingBehindWhenKilledInTheMidst) {
  const std::string contents(8 << 20, 'x');
  const auto child = ::fork();
  if (child == 0) {
    for (;;) write_file(folder_ / "a", contents);
  }
  while (!fs::exists(folder_ / "a")) ::usleep(1000);
  ::usleep(5000);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(fs::file_size(folder_ / "a"), contents.size());
  EXPECT_EQ(count_of_files(), 1);
}

TEST_F(File, RefusesWhatIsMissingTooLargeOrNoFile) {
  EXPECT_THROW(read_file(folder_ / "missing"), InputError);
  EXPECT_THROW(read_file(folder_), InputError);
  EXPECT_THROW(MappedFile(folder_ / "missing"), InputError);
  write_file(folder_ / "a", "12345");
  EXPECT_THROW(read_file(folder_ / "a", 4), InputError);
  EXPECT_EQ(read_file(folder_ / "a", 5), "12345");
}

TEST_F(File, IsThereOrNotUnlessTheSystemDoesNotTell) {
  write_file(folder_ / "a", "x");
  EXPECT_TRUE(is_there(folder_ / "a") && is_file(folder_ / "a") && !is_folder(folder_ / "a"));
  EXPECT_TRUE(is_there(folder_) && is_folder(folder_) && !is_file(folder_));
  for (const auto& missing : {folder_ / "b", folder_ / "a" / "below a file"})
    EXPECT_FALSE(is_there(missing) || is_file(missing) || is_folder(missing)) << missing;
  fs::create_symlink("circle", folder_ / "circle");
  for (const auto& unknown : {folder_ / "circle", folder_ / std::string(5000, 'x')})
    for (const auto& ask : {is_there, is_file, is_folder})
      EXPECT_THAT(message_of([&] { ask(unknown); }),
                  HasSubstr("cannot read \"" + unknown.string()));
}

TEST_F(File, DoesNotWaitForWhatAPipeWillSay) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(message_of<std::exception>([&] { read_file(folder_ / "pipe"); }),
              HasSubstr("is not a file"));
}

TEST_F(File, MapsAndReadsTheSameBytes) {
  write_file(folder_ / "a", "0123456789");
  MappedFile file(folder_ / "a");
  const MappedFile moved = std::move(file);
  ASSERT_EQ(moved.bytes().size(), 10u);
  EXPECT_EQ(char(moved.bytes()[3]), '3');
  moved.prefetch(2, 8);
  moved.release(2, 8);
  EXPECT_EQ(char(moved.bytes()[9]), '9');
}

// Needs a kernel that can tell (Linux 5.14): touching missing bytes kills the process.
TEST_F(File, ThatWasCutShortSinceItWasMappedIsASentence) {
  write_file(folder_ / "a", std::string(1 << 20, 'x'));
  const MappedFile file(folder_ / "a");
  void* const here = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool can_tell = ::madvise(here, 4096, 22 /* MADV_POPULATE_READ */) == 0;
  ::munmap(here, 4096);
  if (!can_tell) GTEST_SKIP() << "this kernel does not tell";
  fs::resize_file(folder_ / "a", 4096);
  file.prefetch(0, 4096);
  EXPECT_THAT(message_of<std::exception>([&] { file.prefetch(0, 1 << 20); }),
              HasSubstr("was cut short"));
}

TEST_F(File, AnEmptyFileMapsToNothing) {
  write_file(folder_ / "a", "");
  EXPECT_TRUE(MappedFile(folder_ / "a").bytes().empty());
}

}  // namespace braid::file_test
