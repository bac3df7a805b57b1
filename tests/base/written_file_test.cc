// Files where a system lacks what whole writes or mappings need, where they cannot be replaced, and
// their rights.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <functional>

#include "base/error.h"
#include "base/file.h"
#include "message_of.h"
#include "temporary_folder.h"

namespace braid::written_file_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

// System calls that fail, by a filter of the kernel's.
class Refused {
 public:
  // No name for a nameless file, as on exFAT, FAT and some network file systems.
  Refused& links() {
#ifdef SYS_link
    all_of(SYS_link, EPERM);
#endif
    return all_of(SYS_linkat, EPERM);
  }
  Refused& nameless_files() {
    filter_.insert(filter_.end(),
                   {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 4),
                    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
                    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, O_TMPFILE),
                    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, O_TMPFILE, 0, 1), fails(EOPNOTSUPP)});
    return *this;
  }
  // NFS, for one, does not do it.
  Refused& renames_to_free_names() { return all_of(SYS_renameat2, EINVAL); }
  // Renames fail with `why`, like those onto a mount point.
  Refused& renames(int why) {
#ifdef SYS_rename
    all_of(SYS_rename, why);
#endif
#ifdef SYS_renameat
    all_of(SYS_renameat, why);
#endif
    return *this;
  }

  Refused& syncs(int why) { return all_of(SYS_fsync, why); }
  Refused& reads(int why) { return all_of(SYS_pread64, why); }
  Refused& mappings_of(int descriptor, int why) {
    filter_.insert(
        filter_.end(),
        {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[4])),
         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, std::uint32_t(descriptor), 0, 1), fails(why)});
    return *this;
  }

  // What `body` throws in a child process with these refusals; nullopt if there are no filters.
  std::optional<std::string> said(const std::function<void()>& body) {
    int ends[2];
    if (::pipe(ends) != 0) return {};
    const auto child = ::fork();
    if (child == 0) {
      if (!begin()) ::_exit(1);
      const auto message = message_of<std::exception>(body);
      ::_exit(::write(ends[1], message.data(), message.size()) < 0 ? 1 : 0);
    }
    ::close(ends[1]);
    const auto message = read_stream(ends[0], "the pipe", 1 << 16);
    ::close(ends[0]);
    int status = -1;
    ::waitpid(child, &status, 0);
    return status == 0 ? std::optional(message) : std::nullopt;
  }

 private:
  static sock_filter fails(int why) {
    return BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | std::uint32_t(why));
  }
  Refused& all_of(long call, int why) {
    filter_.insert(filter_.end(),
                   {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, std::uint32_t(call), 0, 1), fails(why)});
    return *this;
  }
  bool begin() {
    filter_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const sock_fprog program{static_cast<unsigned short>(filter_.size()), filter_.data()};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  }

  std::vector<sock_filter> filter_;
};

struct stat status_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status;
}

// Root may do everything; this user may not.
class AsNobody {
 public:
  AsNobody() { become(kNobody); }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  ~AsNobody() { become(0); }
  static void own(const fs::path& path) {
    const bool is_owned = ::geteuid() != 0 || ::chown(path.c_str(), kNobody, gid_t(-1)) == 0;
    EXPECT_TRUE(is_owned) << path;
  }

 private:
  static constexpr uid_t kNobody = 65534;
  void become(uid_t user) const {
    const bool is_it = !is_root_ || ::seteuid(user) == 0;
    EXPECT_TRUE(is_it) << user;
  }
  bool is_root_ = ::geteuid() == 0;
};

class WrittenFile : public testing::Test {
 protected:
  WrittenFile() { fs::permissions(folder_.path(), fs::perms(0755)); }
  int count_of_files() const {
    return int(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }
  const TemporaryFolder folder_;
  const fs::path file_ = folder_ / "a";
};

TEST_F(WrittenFile, IsNewWithoutLinks) {
  const std::vector<std::pair<const char*, Refused>> systems = {
      {"links", Refused().links()},
      {"exFAT", Refused().links().nameless_files()},
      {"no rename to a free name", Refused().links().nameless_files().renames_to_free_names()}};
  for (auto [name, refused] : systems) {
    SCOPED_TRACE(name);
    fs::remove(file_);
    const auto said = refused.said([&] {
      if (!write_new_file(file_, "first")) throw std::runtime_error("it is new");
      if (write_new_file(file_, "second")) throw std::runtime_error("it is there");
      write_file(folder_ / "b", "old");
      write_file(folder_ / "b", "new");
    });
    if (!said) GTEST_SKIP() << "the system has no filters";
    EXPECT_EQ(*said, "");
    EXPECT_EQ(read_file(file_), "first");
    EXPECT_EQ(read_file(folder_ / "b"), "new");
    EXPECT_EQ(count_of_files(), 2);
  }
}

// File systems of users' programs and network drives cannot.
TEST_F(WrittenFile, IsWholeWhereTheSystemCannotSync) {
  for (const int why : {EINVAL, EOPNOTSUPP, EROFS, ENOSYS}) {
    const auto said = Refused().syncs(why).said([&] { write_file(file_, std::to_string(why)); });
    if (!said) GTEST_SKIP() << "the system has no filters";
    EXPECT_EQ(*said, "");
    EXPECT_EQ(read_file(file_), std::to_string(why));
  }
  for (const int why : {EIO, ENOSPC, EDQUOT})
    EXPECT_THAT(*Refused().syncs(why).said([&] { write_file(file_, "lost"); }),
                HasSubstr("cannot write"))
        << why;
  EXPECT_EQ(read_file(file_), std::to_string(ENOSYS));
}

// The next descriptor becomes `next`.
void take_descriptors_below(int next) {
  int taken = 0;
  while (taken < next) taken = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(taken);
}

TEST_F(WrittenFile, IsReadIntoMemoryWhereItCannotBeMapped) {
  constexpr int kNext = 300;
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += std::to_string(i) + "\n";
  write_file(file_, text);
  const auto read = [&] {
    take_descriptors_below(kNext);
    const MappedFile file(file_);
    const auto all = [&] {
      return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
    };
    const auto first = all();
    file.prefetch(5001, 100'003);
    file.release(0, text.size());
    if (first != text || all() != text) throw std::runtime_error("these are other bytes");
  };
  const auto said = Refused().mappings_of(kNext, ENODEV).said(read);
  if (!said) GTEST_SKIP() << "the system has no filters";
  EXPECT_EQ(*said, "");
  EXPECT_THAT(*Refused().mappings_of(kNext, ENOMEM).said(read), HasSubstr("cannot map"));
}

TEST_F(WrittenFile, IsBlamedForWhatIsNotOfTheMachine) {
  write_file(file_, "text");
  const auto kind_of_failure = [&] {
    try {
      read_file(file_);
    } catch (const InputError&) {
      throw std::runtime_error("input");
    } catch (const Error&) {
      throw std::runtime_error("machine");
    }
  };
  const auto said = Refused().reads(EIO).said(kind_of_failure);
  if (!said) GTEST_SKIP() << "the system has no filters";
  EXPECT_EQ(*said, "machine");
  EXPECT_EQ(*Refused().reads(EACCES).said(kind_of_failure), "input");
}

TEST_F(WrittenFile, LeavesNoReservedNameWhereItFails) {
  const auto said = Refused().links().nameless_files().renames_to_free_names().renames(EIO).said(
      [&] { write_new_file(file_, "first"); });
  if (!said) GTEST_SKIP() << "the system has no filters";
  EXPECT_THAT(*said, HasSubstr("Input/output error"));
  EXPECT_EQ(count_of_files(), 0);
}

TEST_F(WrittenFile, ThatIsAMountPointIsWrittenInto) {
  write_file(file_, "a longer old text");
  const auto before = status_of(file_).st_ino;
  const auto said = Refused().renames(EBUSY).said([&] { write_file(file_, "new"); });
  if (!said) GTEST_SKIP() << "the system has no filters";
  EXPECT_EQ(*said, "");
  EXPECT_EQ(read_file(file_), "new");
  EXPECT_EQ(status_of(file_).st_ino, before);
  EXPECT_EQ(count_of_files(), 1);
  EXPECT_THAT(*Refused().renames(EIO).said([&] { write_file(file_, "x"); }),
              HasSubstr("Input/output error"));
  EXPECT_EQ(read_file(file_), "new");
}

TEST_F(WrittenFile, InAFolderThatTakesNoOtherIsWrittenInto) {
  write_file(file_, "a longer old text");
  fs::permissions(file_, fs::perms(0666));
  fs::permissions(folder_.path(), fs::perms(0555));
  {
    const AsNobody nobody;
    check_can_write(file_);
    write_file(file_, "new");
    EXPECT_THAT(message_of<std::exception>([&] { check_can_write(folder_ / "b"); }),
                HasSubstr("Permission denied"));
    EXPECT_THAT(message_of<std::exception>([&] { write_file(folder_ / "b", "x"); }),
                HasSubstr("Permission denied"));
  }
  fs::permissions(folder_.path(), fs::perms(0755));
  EXPECT_EQ(read_file(file_), "new");
}

TEST_F(WrittenFile, HasTheRightsOfTheOneItReplaces) {
  for (const auto mode : {0600, 0640, 0664}) {
    write_file(file_, "old");
    fs::permissions(file_, fs::perms(mode));
    write_file(file_, "new");
    EXPECT_EQ(status_of(file_).st_mode & 0777, mode_t(mode));
    const auto said = Refused().links().nameless_files().said([&] { write_file(file_, "named"); });
    EXPECT_EQ(said.value_or(""), "");
    EXPECT_EQ(status_of(file_).st_mode & 0777, mode_t(mode));
  }
  if (::geteuid() != 0) return;
  AsNobody::own(file_);
  const auto owner = status_of(file_).st_uid;
  write_file(file_, "root's");
  EXPECT_EQ(status_of(file_).st_uid, owner);
}

// Its folder would let it be replaced.
TEST_F(WrittenFile, ThatIsReadOnlyIsKept) {
  write_file(file_, "old");
  fs::permissions(file_, fs::perms(0400));
  AsNobody::own(file_);
  AsNobody::own(folder_.path());
  {
    const AsNobody nobody;
    EXPECT_THAT(message_of<std::exception>([&] { check_can_write(file_); }),
                HasSubstr("Permission denied"));
    EXPECT_THAT(message_of<std::exception>([&] { write_file(file_, "new"); }),
                HasSubstr("Permission denied"));
  }
  EXPECT_EQ(read_file(file_), "old");
}

TEST_F(WrittenFile, ThatIsOpenedIsWrittenInto) {
  if (!fs::exists("/proc/self/fd")) GTEST_SKIP() << "the system has no /proc";
  write_file(file_, "old ");
  const int opened = ::open(file_.c_str(), O_WRONLY | O_APPEND);
  const auto name = "/proc/self/fd/" + std::to_string(opened);
  check_can_write(name);
  write_file(name, "new ");
  fs::create_symlink(name, folder_ / "link");
  write_file(folder_ / "link", "newer");
  EXPECT_EQ(read_file(file_), "old new newer");
  ::close(opened);
  const int for_reading = ::open(file_.c_str(), O_RDONLY);
  const auto read_only = "/proc/self/fd/" + std::to_string(for_reading);
  EXPECT_THAT(message_of<std::exception>([&] { check_can_write(read_only); }),
              HasSubstr("Bad file descriptor"));
  ::close(for_reading);
}

}  // namespace braid::written_file_test
