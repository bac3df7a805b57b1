// Writes that leave the old file or the whole new one, also on file systems without hard links.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/file_descriptor.h"
#include "base/random_bits.h"

namespace braid {
namespace {

// A function, so that the call that sets errno has finished when it is read.
void check_written(bool holds, const std::filesystem::path& path) {
  check(holds, "cannot write ", path, ": ", std::strerror(errno));
}

void write_all(int fd, std::string_view contents, const std::filesystem::path& path) {
  while (!contents.empty()) {
    const auto n = ::write(fd, contents.data(), contents.size());
    if (n < 0 && errno == EINTR) continue;
    check_written(n >= 0, path);
    contents.remove_prefix(std::size_t(n));
  }
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// A nameless file, freed by the system when the process ends; -1 if unsupported.
int open_nameless(const std::filesystem::path& folder) {
  if (::access("/proc/self/fd", X_OK) != 0) return -1;  // needed to name it later
  return ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
}

// Older C libraries have no function for it.
bool rename_to_free_name(const char* from, const char* to) {
  constexpr unsigned kNoReplace = 1;  // RENAME_NOREPLACE
  return ::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, kNoReplace) == 0;
}

// Becomes the file at `target` once complete; otherwise it is removed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& target)
      : target_(target), fd_(open_nameless(folder_of(target))) {
    if (fd_.get() < 0) make_named();
    if (fd_.get() >= 0) take_rights();
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }

  // Why the folder takes no new file, as an errno; 0 if it does.
  int refusal() const { return fd_.get() < 0 ? refusal_ : 0; }

  // `contents` must outlive this.
  void fill(std::string_view contents) {
    contents_ = contents;
    write_all(fd_.get(), contents, target_);
    check_written(sync_to_disk(fd_.get()));
  }

  // False if something has the target's name.
  bool become_new_target() {
    if (name_.empty()) {
      if (link_as(target_)) return true;
      if (errno == EEXIST) return false;
      become_named();
    }
    if (::link(name_.c_str(), target_.c_str()) == 0) return true;
    return errno != EEXIST && rename_to_new_target();  // exFAT, say, has no links
  }

  // False if the target cannot be replaced; errno says why.
  bool become_target() {
    if (name_.empty() && link_as(target_)) return true;
    if (name_.empty() && errno == EEXIST) link_beside_target();
    if (name_.empty()) become_named();
    if (::rename(name_.c_str(), target_.c_str()) != 0) return false;
    name_.clear();
    return true;
  }

 private:
  void check_written(bool holds) const { braid::check_written(holds, target_); }

  // mkstemp() makes files that only their owner may read, and what the umask allows to others is
  // told only to those who change it, for all threads.
  void make_named() {
    do {
      const auto name = ".braid-" + std::to_string(random_bits() % 1'000'000);
      name_ = (folder_of(target_) / name).string();
      fd_ = FileDescriptor(::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
      refusal_ = errno;
    } while (fd_.get() < 0 && refusal_ == EEXIST);
    if (fd_.get() < 0) name_.clear();
  }

  // A nameless file that cannot be linked is written again.
  void become_named() {
    make_named();
    errno = refusal_;
    check_written(fd_.get() >= 0);
    take_rights();
    fill(contents_);
  }

  // Those of the file that is replaced, as far as this user may give them.
  void take_rights() const {
    struct stat old {};
    if (::stat(target_.c_str(), &old) != 0) return;
    auto mode = old.st_mode & 0777u;
    const bool is_of_group = ::fchown(fd_.get(), old.st_uid, old.st_gid) == 0 ||
                             ::fchown(fd_.get(), uid_t(-1), old.st_gid) == 0;
    if (!is_of_group) mode = (mode & 0707u) | (mode & 07u) << 3;  // as all others, not more
    (void)::fchmod(fd_.get(), mode);
  }

  bool link_as(const std::filesystem::path& name) const {
    const auto self = "/proc/self/fd/" + std::to_string(fd_.get());
    return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  }

  // Leaves the file nameless if it cannot be linked.
  void link_beside_target() {
    const auto stem = folder_of(target_) / (".braid-" + std::to_string(::getpid()) + "-");
    for (int attempt = 0;; ++attempt) {
      const auto name = stem.string() + std::to_string(attempt);
      if (link_as(name)) name_ = name;
      if (!name_.empty() || errno != EEXIST) return;
    }
  }

  bool rename_to_new_target() {
    if (rename_to_free_name(name_.c_str(), target_.c_str())) {
      name_.clear();
      return true;
    }
    return errno != EEXIST && rename_to_reserved_target();  // NFS cannot do this
  }

  // Others see an empty file for a moment.
  bool rename_to_reserved_target() {
    constexpr int kReserve = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    const FileDescriptor reserved(::open(target_.c_str(), kReserve, 0666));
    if (reserved.get() < 0 && errno == EEXIST) return false;
    check_written(reserved.get() >= 0);
    if (::rename(name_.c_str(), target_.c_str()) != 0) {
      const int why = errno;
      ::unlink(target_.c_str());
      errno = why;
      check_written(false);
    }
    name_.clear();
    return true;
  }

  std::filesystem::path target_;
  std::string name_;  // empty: nameless
  std::string_view contents_;
  FileDescriptor fd_;
  int refusal_ = 0;
};

std::filesystem::file_status status_of(const std::filesystem::path& path) {
  std::error_code missing;
  return std::filesystem::status(path, missing);
}

void check_name(const std::filesystem::path& path) {
  struct stat status {};
  // Too long, say, or a link that leads back to itself.
  check_written(::stat(path.c_str(), &status) == 0 || errno == ENOENT, path);
  check(!std::filesystem::is_directory(status_of(path)), "cannot write ", path,
        ": it is a directory");
}

// The end of a path's links. Those in /proc stand for what a process has open.
struct Target {
  std::filesystem::path path;
  bool is_opened = false;
};

Target target_of(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // Linux follows no more
  std::error_code failed;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(path, failed); ++i) {
    struct statfs system {};
    const bool is_known = ::statfs(folder_of(path).c_str(), &system) == 0;
    if (is_known && system.f_type == PROC_SUPER_MAGIC) return {path, true};
    path = path.parent_path() / std::filesystem::read_symlink(path, failed);
  }
  return {path};
}

// The descriptor of this process that the target stands for. Throws Error if it is open for reading
// only.
std::optional<int> own_descriptor(const Target& target) {
  const auto name = target.path.filename().string();
  int number = -1;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
  if (!target.is_opened || read.ptr != name.data() + name.size() || number < 0) return {};
  struct stat named {
  }, own{};
  const bool is_own = ::stat(target.path.c_str(), &named) == 0 && ::fstat(number, &own) == 0 &&
                      named.st_dev == own.st_dev && named.st_ino == own.st_ino;
  if (!is_own) return {};
  const bool is_for_writing = (::fcntl(number, F_GETFL) & O_ACCMODE) != O_RDONLY;
  if (!is_for_writing) errno = EBADF;
  check_written(is_for_writing, target.path);
  return number;
}

bool is_written_into(const Target& target) {
  return target.is_opened || std::filesystem::is_other(status_of(target.path));
}

// Throws Error for a file that is there and read-only: its folder would let it be replaced.
void check_rights(const std::filesystem::path& target, const std::filesystem::path& path) {
  const bool is_writable = !std::filesystem::exists(status_of(target)) ||
                           ::faccessat(AT_FDCWD, target.c_str(), W_OK, AT_EACCESS) == 0;
  check_written(is_writable, path);
}

// A file that is there can be written into where its folder refuses a new one.
void check_refusal(int refusal, const Target& target, const std::filesystem::path& path) {
  const bool is_of_folder = refusal == EACCES || refusal == EPERM || refusal == EROFS;
  const bool may_be_kept = is_of_folder && std::filesystem::exists(status_of(target.path));
  errno = refusal;
  check_written(refusal == 0 || may_be_kept, path);
}

// Room is reserved first, so that a full disk leaves the old contents.
void write_in_place(const std::filesystem::path& path, std::string_view contents) {
  const FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  check_written(fd.get() >= 0, path);
  const auto size = off_t(contents.size());
  const bool is_full = ::fallocate(fd.get(), FALLOC_FL_KEEP_SIZE, 0, size) != 0 &&
                       (errno == ENOSPC || errno == EDQUOT || errno == EFBIG);
  check_written(!is_full, path);
  write_all(fd.get(), contents, path);
  check_written(::ftruncate(fd.get(), size) == 0 && sync_to_disk(fd.get()), path);
}

}  // namespace

void write_file(const std::filesystem::path& path, std::string_view contents) {
  check_name(path);
  const auto target = target_of(path);
  if (const auto own = own_descriptor(target)) return write_all(*own, contents, path);
  if (is_written_into(target)) {
    const FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    check_written(fd.get() >= 0, path);
    return write_all(fd.get(), contents, path);
  }
  check_rights(target.path, path);
  TemporaryFile temporary(target.path);
  check_refusal(temporary.refusal(), target, path);
  if (temporary.refusal() == 0) {
    temporary.fill(contents);
    if (temporary.become_target()) return;
    // A mount point, or another user's file in a folder like /tmp.
    check_written(errno == EBUSY || errno == EPERM || errno == EACCES, path);
  }
  write_in_place(target.path, contents);
}

bool write_new_file(const std::filesystem::path& path, std::string_view contents) {
  check_name(path);
  TemporaryFile temporary(path);
  errno = temporary.refusal();
  check_written(errno == 0, path);
  temporary.fill(contents);
  return temporary.become_new_target();
}

void check_can_write(const std::filesystem::path& path) {
  check_name(path);
  const auto target = target_of(path);
  if (own_descriptor(target)) return;
  if (is_written_into(target)) {
    check_written(::access(path.c_str(), W_OK) == 0, path);
    return;
  }
  check_rights(target.path, path);
  const TemporaryFile temporary(target.path);
  check_refusal(temporary.refusal(), target, path);
}

// The reasons are those that POSIX and Linux name for files without synchronization, and that file
// systems of users' programs, network drives and /proc give.
bool sync_to_disk(int descriptor) {
  while (::fsync(descriptor) != 0) {
    if (errno == EINTR) continue;
    return errno == EINVAL || errno == EOPNOTSUPP || errno == EROFS || errno == ENOSYS;
  }
  return true;
}

std::filesystem::path file_named(const std::filesystem::path& path) { return target_of(path).path; }

}  // namespace braid
