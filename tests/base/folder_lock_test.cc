// A folder's lock: one holder at a time, and gone with its process.
#include "base/folder_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <utility>

#include "message_of.h"
#include "temporary_folder.h"

namespace braid::folder_lock_test {

using testing::HasSubstr;

TEST(FolderLock, HasOneHolderAtATime) {
  const TemporaryFolder folder;
  {
    const FolderLock first(folder.path());
    EXPECT_TRUE(first.is_held());
    EXPECT_FALSE(FolderLock(folder.path()).is_held());
    EXPECT_FALSE(FolderLock(folder.path()).is_held()) << "one who did not get it took it away";
    EXPECT_TRUE(FolderLock(folder.path().parent_path()).is_held()) << "another folder";
  }
  EXPECT_TRUE(FolderLock(folder.path()).is_held());
}

TEST(FolderLock, MovesToItsNewOwner) {
  const TemporaryFolder folder;
  {
    FolderLock first(folder.path());
    const FolderLock second = std::move(first);
    EXPECT_TRUE(second.is_held());
    EXPECT_FALSE(first.is_held());  // NOLINT(bugprone-use-after-move): it says so itself
    EXPECT_FALSE(FolderLock(folder.path()).is_held());
  }
  EXPECT_TRUE(FolderLock(folder.path()).is_held());
}

TEST(FolderLock, IsOfTheFolderWhateverItsName) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "one");
  std::filesystem::create_directory_symlink("one", folder / "link");
  const FolderLock lock(folder / "link");
  EXPECT_TRUE(lock.is_held());
  EXPECT_FALSE(FolderLock(folder / "one").is_held());
}

// A child process that has become another program.
pid_t started_program() {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const auto child = ::fork();
  if (child == 0) {
    ::execl("/bin/sleep", "sleep", "60", nullptr);
    ::_exit(1);
  }
  ::close(ends[1]);
  char none;
  EXPECT_EQ(::read(ends[0], &none, 1), 0);  // closed by starting `sleep`
  ::close(ends[0]);
  return child;
}

void end(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(FolderLock, IsNotLeftToProgramsThatWereStarted) {
  const TemporaryFolder folder;
  pid_t child = 0;
  {
    const FolderLock lock(folder.path());
    child = started_program();
  }
  EXPECT_TRUE(FolderLock(folder.path()).is_held());
  end(child);
}

TEST(FolderLock, EndsWithAKilledProcess) {
  const TemporaryFolder folder;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const auto child = ::fork();
  if (child == 0) {
    const FolderLock lock(folder.path());
    const char held = lock.is_held() ? 'y' : 'n';
    (void)!::write(ends[1], &held, 1);
    ::pause();
  }
  char held = 0;
  ASSERT_EQ(::read(ends[0], &held, 1), 1);
  EXPECT_EQ(held, 'y');
  EXPECT_FALSE(FolderLock(folder.path()).is_held());
  end(child);
  EXPECT_TRUE(FolderLock(folder.path()).is_held());
  for (const int fd : ends) ::close(fd);
}

TEST(FolderLock, NamesWhatIsNoFolder) {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "x";
  EXPECT_THAT(message_of<Error>([&] { FolderLock(folder / "file"); }),
              testing::AllOf(HasSubstr((folder / "file").string()), HasSubstr("Not a directory")));
  EXPECT_THAT(message_of<Error>([&] { FolderLock(folder / "none"); }), HasSubstr("No such file"));
}

}  // namespace braid::folder_lock_test
