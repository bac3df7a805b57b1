#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/control_group.h"
#include "base/error.h"
#include "base/file_descriptor.h"
#include "base/foreign_file.h"

namespace braid {
namespace {

std::string reason() { return std::strerror(errno); }

// Failures of the machine, whatever file is asked for; all others are those of the path.
bool is_of_machine(int why) {
  constexpr std::array kMachine = {EIO,    ENOMEM,    EMFILE,    ENFILE,   ENOBUFS,
                                   ESTALE, EREMOTEIO, ETIMEDOUT, ENOTCONN, EHOSTDOWN};
  return std::find(kMachine.begin(), kMachine.end(), why) != kMachine.end();
}

[[noreturn]] void refuse_reading(const std::string& what, int why) {
  const auto message = text_of("cannot read ", what, ": ", std::strerror(why));
  if (is_of_machine(why)) throw Error(message);
  throw InputError(message);
}

// A function, so that the call that sets errno has finished when it is read.
void require_read(bool holds, const std::filesystem::path& path) {
  const int why = errno;
  if (!holds) refuse_reading(text_of(path), why);
}

int open_for_reading(const std::filesystem::path& path, struct stat& status) {
  // does not block if the path is a pipe
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  require_read(fd.is_open(), path);
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

std::filesystem::file_status known_status_of(const std::filesystem::path& path) {
  std::error_code failure;
  const auto status = std::filesystem::status(path, failure);
  if (!std::filesystem::status_known(status)) refuse_reading(text_of(path), failure.value());
  return status;
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

namespace {

// Some file systems of users' programs map no files. A file of the same bytes in memory does not
// differ from the mapped one, so that its pages may be dropped and read again.
FileDescriptor copy_in_memory(int fd, std::size_t size, const std::filesystem::path& path) {
  const auto available = available_memory();
  check(available == 0 || size <= available, "cannot read ", path,
        ": its file system cannot map files, and the ", size,
        " bytes do not fit into the memory that is left: copy it to another disk");
  constexpr unsigned kCloseOnExec = 1;  // MFD_CLOEXEC; older C libraries have no memfd_create()
  FileDescriptor copy(int(::syscall(SYS_memfd_create, "braid", kCloseOnExec)));
  check(copy.is_open(), "cannot map ", path, ": ", reason());
  std::string part(std::min<std::size_t>(size, 1 << 20), '\0');
  for (std::size_t done = 0; done < size;) {
    const auto into =
        std::as_writable_bytes(std::span(part)).first(std::min(part.size(), size - done));
    const auto count = read_up_to(fd, done, into, path);
    check(count > 0, path, " was cut short while it was read");
    const auto written = ::pwrite(copy.get(), part.data(), count, off_t(done));
    check(written > 0, "cannot map ", path, ": ", reason());
    done += std::size_t(written);
  }
  return copy;
}

const std::byte* map(int fd, std::size_t size, const std::filesystem::path& path) {
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (at == MAP_FAILED && errno == ENODEV) {
    const auto copy = copy_in_memory(fd, size, path);
    at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, copy.get(), 0);
  }
  check(at != MAP_FAILED, "cannot map ", path, ": ", reason());
  return static_cast<const std::byte*>(at);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  struct stat status {};
  FileDescriptor fd(open_for_reading(path, status));
  size_ = std::size_t(status.st_size);
  if (size_ > 0) data_ = map(fd.get(), size_, path);
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
  if (!fd.is_open()) refuse_reading(what, errno);
  return read_stream(fd.get(), what, max_bytes);
}

std::string read_stream(int descriptor, const std::string& what, std::uint64_t max_bytes) {
  std::string text;
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const auto n = ::read(descriptor, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse_reading(what, errno);
    if (n == 0) return text;
    text.append(buffer.data(), std::size_t(n));
    require(text.size() <= max_bytes, "cannot read ", what, ": it has more than ", max_bytes,
            " bytes");
  }
}

}  // namespace braid
