#include "weights/paging/file_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace braid {
namespace {

// Whether all of `into` was read; false at the end of the file or at an error.
bool read_all(int fd, std::int64_t offset, std::span<std::byte> into) {
  while (!into.empty()) {
    const auto n = ::pread(fd, into.data(), into.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    into = into.subspan(std::size_t(n));
    offset += n;
  }
  return true;
}

bool are_whole_blocks(std::int64_t offset, std::span<const std::byte> into) {
  const auto address = reinterpret_cast<std::uintptr_t>(into.data());
  return (std::uint64_t(offset) | address | into.size()) % FileReader::kBlock == 0;
}

// Does not block if the path is a pipe.
FileDescriptor open_file(const std::filesystem::path& path) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const int failure = errno;
  check(file.is_open(), "cannot read the page ", path, ": ", std::strerror(failure));
  struct stat status {};
  const bool is_file = ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode);
  check(is_file, "cannot read the page ", path, ": it is not a file");
  return file;
}

std::byte* map(int fd, std::int64_t size) {
  if (size <= 0) return nullptr;
  void* const at = ::mmap(nullptr, std::size_t(size), PROT_READ, MAP_SHARED, fd, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

}  // namespace

FileReader::FileReader(const std::filesystem::path& path, DiskReads how)
    : how_(how), file_(open_file(path)) {
  size_ = ::lseek(file_.get(), 0, SEEK_END);
  if (how != DiskReads::kMapped)
    direct_ = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
  if (how != DiskReads::kDirect) mapping_ = map(file_.get(), size_);
}

FileReader::~FileReader() {
  if (mapping_) ::munmap(mapping_, std::size_t(size_));
}

// Whether the system's page cache holds all of the range.
bool FileReader::is_cached(std::int64_t offset, std::int64_t size) const {
  const auto page = std::int64_t(::sysconf(_SC_PAGESIZE));
  const auto begin = offset / page * page;
  const auto length = offset + size - begin;
  std::vector<unsigned char> pages(std::size_t((length + page - 1) / page));
  if (::mincore(mapping_ + begin, std::size_t(length), pages.data()) != 0) return false;
  return std::ranges::all_of(pages, [](unsigned char state) { return (state & 1) != 0; });
}

Populated FileReader::read_mapped(std::int64_t offset, std::span<std::byte> into) const {
  if (offset + std::int64_t(into.size()) > size_) return Populated::kNo;
  const std::span<const std::byte> mapped(mapping_ + offset, into.size());
  const auto populated = populate_pages(mapped);
  if (populated != Populated::kYes) return populated;
  std::memcpy(into.data(), mapped.data(), into.size());
  drop_pages(mapped);  // stays in the page cache
  return Populated::kYes;
}

bool FileReader::read(std::int64_t offset, std::span<std::byte> into) const {
  const bool is_mapped =
      mapping_ && (how_ == DiskReads::kMapped || is_cached(offset, std::int64_t(into.size())));
  if (is_mapped) {
    const auto got = read_mapped(offset, into);
    if (got != Populated::kUnknown) return got == Populated::kYes;
  }
  const bool is_direct = direct_.is_open() && are_whole_blocks(offset, into);
  return (is_direct && read_all(direct_.get(), offset, into)) ||
         read_all(file_.get(), offset, into);
}

}  // namespace braid
