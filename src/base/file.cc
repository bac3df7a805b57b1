#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace braid {
namespace {

std::string reason() { return std::strerror(errno); }

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

int open_for_reading(const std::filesystem::path& path, struct stat& status) {
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  require(fd.get() >= 0, "cannot read ", path, ": ", reason());
  require(::fstat(fd.get(), &status) == 0, "cannot read ", path, ": ", reason());
  require(S_ISREG(status.st_mode), "cannot read ", path, ": it is not a file");
  return fd.release();
}

// Bytes read before the end of the file; throws on anything but the end.
std::size_t read_up_to(int fd, std::uint64_t offset, std::span<std::byte> out,
                       const std::filesystem::path& path) {
  std::size_t done = 0;
  while (done < out.size()) {
    const auto n = ::pread(fd, out.data() + done, out.size() - done, off_t(offset + done));
    if (n < 0 && errno == EINTR) continue;
    require(n >= 0, "cannot read ", path, ": ", reason());
    if (n == 0) break;
    done += std::size_t(n);
  }
  return done;
}

void write_all(int fd, std::string_view contents, const std::filesystem::path& path) {
  while (!contents.empty()) {
    const auto n = ::write(fd, contents.data(), contents.size());
    if (n < 0 && errno == EINTR) continue;
    check(n >= 0, "cannot write ", path, ": ", reason());
    contents.remove_prefix(std::size_t(n));
  }
}

// A temporary file that is gone unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& target)
      : name_(target.string() + ".XXXXXX"), fd_(::mkostemp(name_.data(), O_CLOEXEC)) {
    check(fd_.get() >= 0, "cannot write ", target, ": ", reason());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }
  int fd() const { return fd_.get(); }
  void rename_to(const std::filesystem::path& target) {
    check(::rename(name_.c_str(), target.c_str()) == 0, "cannot write ", target, ": ", reason());
    name_.clear();
  }

 private:
  std::string name_;
  FileDescriptor fd_;
};

constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, which older headers lack

// [offset, offset + size) widened to whole pages at its start, as madvise wants it.
std::span<std::byte> pages_around(std::span<const std::byte> all, std::uint64_t offset,
                                  std::uint64_t size) {
  const auto page = std::uint64_t(::sysconf(_SC_PAGESIZE));
  const auto begin = offset / page * page;
  return {const_cast<std::byte*>(all.data()) + begin, std::size_t(offset + size - begin)};
}

// mkstemp makes files for the owner only; a result should have the mode that the umask gives.
mode_t default_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return mode_t(0666 & ~mask);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  struct stat status {};
  FileDescriptor fd(open_for_reading(path, status));
  size_ = std::size_t(status.st_size);
  if (size_ > 0) {
    void* const at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    require(at != MAP_FAILED, "cannot map ", path, ": ", reason());
    data_ = static_cast<const std::byte*>(at);
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
  // Page tables are filled too where the kernel can (Linux 5.14); else the file is only read ahead.
  const auto pages = pages_around(bytes(), offset, size);
  if (::madvise(pages.data(), pages.size(), kPopulateRead) == 0) return;
  (void)::madvise(pages.data(), pages.size(), MADV_WILLNEED);
}

void MappedFile::release(std::uint64_t offset, std::uint64_t size) const {
  if (size == 0) return;
  const auto pages = pages_around(bytes(), offset, size);
  (void)::madvise(pages.data(), pages.size(), MADV_DONTNEED);
}

std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  struct stat status {};
  const FileDescriptor fd(open_for_reading(path, status));
  const auto size = std::uint64_t(status.st_size);
  require(size <= max_bytes, "cannot read ", path, ": it has ", size, " bytes, at most ", max_bytes,
          " were expected");
  std::string contents(size, '\0');
  contents.resize(read_up_to(fd.get(), 0, std::as_writable_bytes(std::span(contents)), path));
  return contents;
}

void write_file(const std::filesystem::path& path, std::string_view contents) {
  check(!std::filesystem::is_directory(path), "cannot write ", path, ": it is a directory");
  TemporaryFile temporary(path);
  write_all(temporary.fd(), contents, path);
  check(::fchmod(temporary.fd(), default_mode()) == 0, "cannot write ", path, ": ", reason());
  check(::fsync(temporary.fd()) == 0, "cannot write ", path, ": ", reason());
  temporary.rename_to(path);
}

}  // namespace braid
