#include "net/hub/incomplete_blob.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace braid::net {
namespace {

constexpr std::size_t kSha256Digits = 64, kPiece = 1 << 20;

// Hands on all bytes up to the end; returns how many there are.
template <class Take>
std::uint64_t read_to_end(int fd, const std::filesystem::path& path, Take take) {
  std::vector<char> piece(kPiece);
  std::uint64_t total = 0;
  for (;;) {
    const auto n = ::pread(fd, piece.data(), piece.size(), off_t(total));
    if (n < 0 && errno == EINTR) continue;
    check(n >= 0, "cannot read ", path.string(), ": ", std::strerror(errno));
    if (n == 0) return total;
    take(std::string_view(piece.data(), std::size_t(n)));
    total += std::uint64_t(n);
  }
}

}  // namespace

BlobHash::BlobHash(const HubFile& file) {
  if (file.etag.size() == kSha256Digits) return;
  digest_ = Sha1();
  add(git_blob_head(file.size));
}

void BlobHash::add(std::string_view bytes) {
  std::visit([&](auto& digest) { digest.add(bytes); }, digest_);
}

std::string BlobHash::hex() {
  return std::visit([](auto& digest) { return digest.hex(); }, digest_);
}

std::string hash_of_file(const std::filesystem::path& path, const HubFile& file) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  check(fd >= 0, "cannot read ", path.string(), ": ", std::strerror(errno));
  BlobHash hash(file);
  try {
    read_to_end(fd, path, [&](std::string_view bytes) { hash.add(bytes); });
  } catch (...) {
    ::close(fd);
    throw;
  }
  ::close(fd);
  return hash.hex();
}

IncompleteBlob::IncompleteBlob(const std::filesystem::path& path, const HubFile& file)
    : path_(path),
      file_(file),
      fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)),
      hash_(file) {
  require_written(fd_ >= 0);
  try {
    size_ = read_to_end(fd_, path_, [&](std::string_view bytes) { hash_.add(bytes); });
    if (size_ > file_.size) restart();
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

IncompleteBlob::~IncompleteBlob() { ::close(fd_); }

void IncompleteBlob::require_written(bool is_written) const {
  check(is_written, "cannot write ", path_.string(), ": ", std::strerror(errno));
}

void IncompleteBlob::add(std::string_view bytes) {
  check(size_ + bytes.size() <= file_.size, "the hub sends more bytes of ", file_.path,
        " than the ", file_.size, " that it has");
  hash_.add(bytes);
  while (!bytes.empty()) {
    const auto n = ::pwrite(fd_, bytes.data(), bytes.size(), off_t(size_));
    if (n < 0 && errno == EINTR) continue;
    require_written(n > 0);
    bytes.remove_prefix(std::size_t(n));
    size_ += std::uint64_t(n);
  }
}

void IncompleteBlob::restart() {
  require_written(::ftruncate(fd_, 0) == 0);
  size_ = 0;
  hash_ = BlobHash(file_);
}

bool IncompleteBlob::is_right() { return size_ == file_.size && hash_.hex() == file_.etag; }

void IncompleteBlob::become(const std::filesystem::path& blob) {
  require_written(sync_to_disk(fd_));
  require_written(::rename(path_.c_str(), blob.c_str()) == 0);
}

void IncompleteBlob::remove() { ::unlink(path_.c_str()); }

}  // namespace braid::net
