// Files: mapped reads, bounded reads, writes that leave the old file or the whole new one.
#include "base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

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

TEST_F(File, ALinkStaysWhereWhatItLeadsToIsNew) {
  fs::create_directory(folder_ / "there");
  fs::create_symlink("there/new", folder_ / "second");
  fs::create_symlink("second", folder_ / "first");
  write_file(folder_ / "first", "contents");
  EXPECT_TRUE(fs::is_symlink(folder_ / "first") && fs::is_symlink(folder_ / "second"));
  EXPECT_EQ(read_file(folder_ / "there" / "new"), "contents");
  fs::create_symlink("nowhere/new", folder_ / "lost");
  EXPECT_THAT(message_of<std::exception>([&] { write_file(folder_ / "lost", "x"); }),
              HasSubstr("No such file or directory"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "lost"));
  fs::create_symlink("circle", folder_ / "circle");
  EXPECT_THAT(message_of<std::exception>([&] { write_file(folder_ / "circle", "x"); }),
              HasSubstr("Too many levels of symbolic links"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "circle"));
}

// A pipe first: were it replaced, so would the machine's devices be when root runs this.
TEST_F(File, PipesAndDevicesAreWrittenToAndNotReplaced) {
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  write_file(pipe, "through it");
  char read[32] = {};
  EXPECT_EQ(::read(reader, read, sizeof read), 10);
  EXPECT_STREQ(read, "through it");
  ::close(reader);
  ASSERT_TRUE(fs::is_fifo(pipe));
  write_file("/dev/null", "x");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THAT(message_of<std::exception>([] { write_file("/dev/full", "x"); }),
              HasSubstr("No space left"));
}

// A full disk, as a limit to the size of files: part of the contents can be written.
TEST_F(File, AFullDiskLeavesTheOldFileAndNoOther) {
  const auto path = folder_ / "a";
  write_file(path, "old");
  const auto child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 16, 1 << 16};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto message =
        message_of<std::exception>([&] { write_file(path, std::string(1 << 20, 'x')); });
    ::_exit(message.find("File too large") == message.npos ? 1 : 0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "it should say so";
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(count_of_files(), 1);
}

// Numbers of processes return; a file of that name may be another program's.
TEST_F(File, IsReplacedDespiteWhatAProcessOfThisNumberLeft) {
  const auto left = folder_ / (".braid-" + std::to_string(::getpid()) + "-0");
  std::ofstream(left) << "left";
  write_file(folder_ / "a", "old");
  write_file(folder_ / "a", "new");
  EXPECT_EQ(read_file(folder_ / "a"), "new");
  EXPECT_EQ(read_file(left), "left");
  EXPECT_EQ(count_of_files(), 2);
}

TEST_F(File, AStreamIsReadToItsEndHoweverItComes) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::thread writer([&] {
    EXPECT_EQ(::write(ends[1], "first ", 6), 6);
    for (int left = 1; left > 0; ::usleep(100)) ASSERT_EQ(::ioctl(ends[0], FIONREAD, &left), 0);
    EXPECT_EQ(::write(ends[1], "second", 6), 6);
    ::close(ends[1]);
  });
  EXPECT_EQ(read_stream(ends[0], "the pipe", 100), "first second");
  writer.join();
  ::close(ends[0]);
}

TEST_F(File, AStreamMayHaveAllBytesThatAreAllowedAndNoneMore) {
  const std::string text(100'000, 'x');
  write_file(folder_ / "key", text);
  EXPECT_EQ(read_stream(folder_ / "key", "the key", text.size()), text);
  EXPECT_EQ(message_of([&] { read_stream(folder_ / "key", "the key", text.size() - 1); }),
            "cannot read the key: it has more than 99999 bytes");
  EXPECT_EQ(message_of([&] { read_stream(folder_ / "none", "the key", 1); }),
            "cannot read the key: No such file or directory");
  EXPECT_EQ(message_of([&] { read_stream(folder_, "the key", 1); }),
            "cannot read the key: Is a directory");
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

// The system kills who writes more than a limit. A kill at any time would also come between the
// link and the rename that replaces a file, once in 300 times, where a link is left.
TEST_F(File, LeavesNothingBehindWhenKilledInTheMidst) {
  write_file(folder_ / "a", "old");
  const std::string contents(8 << 20, 'x');
  const auto child = ::fork();
  if (child == 0) {
    const rlimit most{contents.size() / 2, contents.size() / 2}, no_core{};
    std::signal(SIGXFSZ, SIG_DFL);
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::setrlimit(RLIMIT_FSIZE, &most);
    write_file(folder_ / "a", contents);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) << status;
  EXPECT_EQ(read_file(folder_ / "a"), "old");
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

TEST_F(File, BelowAFolderAreFoundWhereverTheyMayBeRead) {
  fs::create_directories(folder_ / "b/c");
  fs::create_directories(folder_ / "closed/d");
  for (const auto* const name : {"z", "b/a", "b/c/x", "closed/y"}) write_file(folder_ / name, "1");
  fs::create_symlink("z", folder_ / "link");
  fs::create_symlink("nothing", folder_ / "broken");
  fs::permissions(folder_ / "closed", fs::perms::none);
  constexpr uid_t kNobody = 65534;  // root may read everything
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  const auto files = files_below(folder_);
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  fs::permissions(folder_ / "closed", fs::perms::owner_all);
  std::vector<std::string> names;
  for (const auto& file : files) names.push_back(file.lexically_relative(folder_).string());
  EXPECT_THAT(names, testing::ElementsAre("b/a", "b/c/x", "link", "z"));
  EXPECT_THAT(files_below(folder_ / "none"), testing::IsEmpty());
}

TEST_F(File, DoesNotWaitForWhatAPipeWillSay) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(message_of([&] { read_file(folder_ / "pipe"); }), HasSubstr("it is a pipe"));
  EXPECT_THAT(message_of([&] { read_file("/dev/null"); }), HasSubstr("it is not a file"));
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
  const auto page = std::uint64_t(::sysconf(_SC_PAGESIZE));
  fs::resize_file(folder_ / "a", page);
  file.prefetch(0, page);
  for (const auto& [offset, size] :
       {std::pair(std::uint64_t(0), std::uint64_t(1) << 20), {page - 1, 2}, {page + 1, 1}})
    EXPECT_THAT(message_of<std::exception>([&] { file.prefetch(offset, size); }),
                HasSubstr("was cut short"))
        << offset;
  file.prefetch(page - 1, 1);
  file.prefetch(page, 0);
}

// What is read again after release() is the file's, not zeros, from the middle of a page on.
TEST_F(File, ReleasedPagesAreReadAgain) {
  std::string text;
  for (int i = 0; i < 40'000; ++i) text += std::to_string(i) + "\n";
  write_file(folder_ / "a", text);
  const MappedFile file(folder_ / "a");
  const auto all = [&] {
    return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  };
  EXPECT_EQ(all(), text);
  file.release(5001, 100'003);
  EXPECT_EQ(all(), text);
  file.release(0, text.size());
  EXPECT_EQ(all(), text);
}

TEST_F(File, AMappingIsReplacedByAnother) {
  write_file(folder_ / "a", "first");
  write_file(folder_ / "b", "the second");
  MappedFile file(folder_ / "a");
  file = MappedFile(folder_ / "b");
  EXPECT_EQ(file.path(), folder_ / "b");
  ASSERT_EQ(file.bytes().size(), 10u);
  EXPECT_EQ(char(file.bytes()[4]), 's');
}

TEST_F(File, AnEmptyFileMapsToNothing) {
  write_file(folder_ / "a", "");
  EXPECT_TRUE(MappedFile(folder_ / "a").bytes().empty());
}

}  // namespace braid::file_test
