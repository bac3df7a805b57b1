#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/foreign_file.h"
#include "base/random_bits.h"

namespace braid {
namespace {

std::string reason() { return std::strerror(errno); }

// Functions, so that the call that sets errno has finished when reason() reads it: argument
// evaluation order is unspecified.
void check_written(bool holds, const std::filesystem::path& path) {
  check(holds, "cannot write ", path, ": ", reason());
}
void require_read(bool holds, const std::filesystem::path& path) {
  require(holds, "cannot read ", path, ": ", reason());
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

int open_for_reading(const std::filesystem::path& path, struct stat& status) {
  // does not block if the path is a pipe
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  require_read(fd.get() >= 0, path);
  require_read(::fstat(fd.get(), &status) == 0, path);
  require(!S_ISFIFO(status.st_mode), "cannot read ", path,
          ": it is a pipe, and this is read from files only");
  require(S_ISREG(status.st_mode), "cannot read ", path, ": it is not a file");
  return fd.release();
}

// Bytes read before the end of the file; throws on any other failure.
std::size_t read_up_to(int fd, std::uint64_t offset, std::span<std::byte> out,
                       const std::filesystem::path& path) {
  std::size_t done = 0;
  while (done < out.size()) {
    const auto n = ::pread(fd, out.data() + done, out.size() - done, off_t(offset + done));
    if (n < 0 && errno == EINTR) continue;
    require_read(n >= 0, path);
    if (n == 0) break;
    done += std::size_t(n);
  }
  return done;
}

void write_all(int fd, std::string_view contents, const std::filesystem::path& path) {
  while (!contents.empty()) {
    const auto n = ::write(fd, contents.data(), contents.size());
    if (n < 0 && errno == EINTR) continue;
    check_written(n >= 0, path);
    contents.remove_prefix(std::size_t(n));
  }
}

// A nameless file, freed by the system when the process ends; -1 if unsupported.
int open_nameless(const std::filesystem::path& folder) {
  if (::access("/proc/self/fd", X_OK) != 0) return -1;  // needed to name it later
  return ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// Becomes the file at `target` once complete; otherwise it is removed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& target)
      : target_(target), fd_(open_nameless(folder_of(target))) {
    if (fd_.get() < 0) make_named();
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }
  int fd() const { return fd_.get(); }

  // False if something has the target's name.
  bool become_new_target() {
    if (name_.empty()) return link_as(target_);
    const bool is_linked = ::link(name_.c_str(), target_.c_str()) == 0;
    check_written(is_linked || errno == EEXIST);
    return is_linked;
  }

  void become_target() {
    if (name_.empty() && link_as(target_)) return;
    if (name_.empty()) link_beside_target();
    check_written(::rename(name_.c_str(), target_.c_str()) == 0);
    name_.clear();
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
    } while (fd_.get() < 0 && errno == EEXIST);
    if (fd_.get() < 0) name_.clear();
    check_written(fd_.get() >= 0);
  }

  // False if a file of that name exists, which linking does not replace.
  bool link_as(const std::filesystem::path& name) const {
    const auto self = "/proc/self/fd/" + std::to_string(fd_.get());
    const bool is_linked =
        ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
    check_written(is_linked || errno == EEXIST);
    return is_linked;
  }

  void link_beside_target() {
    const auto stem = folder_of(target_) / (".braid-" + std::to_string(::getpid()) + "-");
    for (int attempt = 0; name_.empty(); ++attempt) {
      const auto name = stem.string() + std::to_string(attempt);
      if (link_as(name)) name_ = name;
    }
  }

  std::filesystem::path target_;
  std::string name_;  // empty: nameless
  FileDescriptor fd_;
};

// The file `path` leads to through links, whether or not it is there.
std::filesystem::path followed(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // Linux follows no more
  std::error_code failed;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(path, failed); ++i)
    path = path.parent_path() / std::filesystem::read_symlink(path, failed);
  return path;
}

std::filesystem::file_status status_of(const std::filesystem::path& path) {
  std::error_code missing;
  return std::filesystem::status(path, missing);
}

std::filesystem::file_status known_status_of(const std::filesystem::path& path) {
  std::error_code failure;
  const auto status = std::filesystem::status(path, failure);
  require(std::filesystem::status_known(status), "cannot read ", path, ": ", failure.message());
  return status;
}

void check_name(const std::filesystem::path& path) {
  struct stat status {};
  // Too long, say, or a link that leads back to itself.
  check_written(::stat(path.c_str(), &status) == 0 || errno == ENOENT, path);
  check(!std::filesystem::is_directory(status_of(path)), "cannot write ", path,
        ": it is a directory");
}

// Extended to a page boundary at its start, as madvise requires.
std::span<std::byte> pages_around(std::span<const std::byte> mapped) {
  const auto page = std::uintptr_t(::sysconf(_SC_PAGESIZE));
  const auto before = reinterpret_cast<std::uintptr_t>(mapped.data()) % page;
  return {const_cast<std::byte*>(mapped.data()) - before, mapped.size() + before};
}

}  // namespace

Populated populate_pages(std::span<const std::byte> mapped) {
  constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, missing in older headers
  const auto pages = pages_around(mapped);
  if (::madvise(pages.data(), pages.size(), kPopulateRead) == 0) return Populated::kYes;
  return errno == EINVAL ? Populated::kUnknown : Populated::kNo;
}

void drop_pages(std::span<const std::byte> mapped) {
  const auto pages = pages_around(mapped);
  (void)::madvise(pages.data(), pages.size(), MADV_DONTNEED);
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  struct stat status {};
  FileDescriptor fd(open_for_reading(path, status));
  size_ = std::size_t(status.st_size);
  if (size_ > 0) {
    void* const at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    require(at != MAP_FAILED, "cannot map ", path, ": ", reason());
    data_ = static_cast<const std::byte*>(at);
  }
  try {
    require_no_pointer(bytes(), path);
  } catch (...) {
    if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
    throw;
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::prefetch(std::uint64_t offset, std::uint64_t size) const {
  if (size == 0) return;
  const auto part = bytes().subspan(offset, size);
  const auto populated = populate_pages(part);
  check(populated != Populated::kNo, path_,
        " was cut short since it was opened, or cannot be read: ", reason());
  if (populated == Populated::kYes) return;
  const auto pages = pages_around(part);  // at least read ahead
  (void)::madvise(pages.data(), pages.size(), MADV_WILLNEED);
}

void MappedFile::release(std::uint64_t offset, std::uint64_t size) const {
  // Each call interrupts all cores; a model has hundreds of tensors that are smaller than this.
  constexpr std::uint64_t kWorthwhile = 64 << 10;
  if (size < kWorthwhile) return;
  drop_pages(bytes().subspan(offset, size));
}

std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  std::error_code unreadable;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied,
                                         unreadable);
  for (; !unreadable && entry != fs::recursive_directory_iterator(); entry.increment(unreadable)) {
    std::error_code missing;
    if (entry->is_regular_file(missing)) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool is_there(const std::filesystem::path& path) {
  return std::filesystem::exists(known_status_of(path));
}

bool is_folder(const std::filesystem::path& path) {
  return std::filesystem::is_directory(known_status_of(path));
}

bool is_file(const std::filesystem::path& path) {
  return std::filesystem::is_regular_file(known_status_of(path));
}

std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  struct stat status {};
  const FileDescriptor fd(open_for_reading(path, status));
  const auto size = std::uint64_t(status.st_size);
  require(size <= max_bytes, "cannot read ", path, ": it has ", size, " bytes, at most ", max_bytes,
          " were expected");
  std::string contents(size, '\0');
  contents.resize(read_up_to(fd.get(), 0, std::as_writable_bytes(std::span(contents)), path));
  require_no_pointer(std::as_bytes(std::span(contents)), path);
  return contents;
}

std::string read_stream(const std::filesystem::path& path, const std::string& what,
                        std::uint64_t max_bytes) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  require(fd.get() >= 0, "cannot read ", what, ": ", reason());
  return read_stream(fd.get(), what, max_bytes);
}

std::string read_stream(int descriptor, const std::string& what, std::uint64_t max_bytes) {
  std::string text;
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const auto n = ::read(descriptor, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    require(n >= 0, "cannot read ", what, ": ", reason());
    if (n == 0) return text;
    text.append(buffer.data(), std::size_t(n));
    require(text.size() <= max_bytes, "cannot read ", what, ": it has more than ", max_bytes,
            " bytes");
  }
}

void write_file(const std::filesystem::path& path, std::string_view contents) {
  check_name(path);
  if (std::filesystem::is_other(status_of(path))) {  // a pipe, a device
    const FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    check_written(fd.get() >= 0, path);
    return write_all(fd.get(), contents, path);
  }
  TemporaryFile temporary(followed(path));
  write_all(temporary.fd(), contents, path);
  check_written(::fsync(temporary.fd()) == 0, path);
  temporary.become_target();
}

bool write_new_file(const std::filesystem::path& path, std::string_view contents) {
  check_name(path);
  TemporaryFile temporary(path);
  write_all(temporary.fd(), contents, path);
  check_written(::fsync(temporary.fd()) == 0, path);
  return temporary.become_new_target();
}

void check_can_write(const std::filesystem::path& path) {
  check_name(path);
  if (std::filesystem::is_other(status_of(path))) {
    check_written(::access(path.c_str(), W_OK) == 0, path);
  } else {
    const TemporaryFile temporary(followed(path));
  }
}

}  // namespace braid
