#include "net/hub/cached_repository.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/hub_cache.h"

namespace braid::net {
namespace {

namespace fs = std::filesystem;

constexpr auto kAskAgain = std::chrono::milliseconds(100);

void make_folder(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  check(!failure, "cannot create the folder ", folder.string(), ": ", failure.message());
}

std::uint64_t size_or_zero(const fs::path& path) {
  std::error_code missing;
  const auto size = fs::file_size(path, missing);
  return missing ? 0 : std::uint64_t(size);
}

bool has_size(const fs::path& path, std::uint64_t size) {
  std::error_code missing;
  return fs::is_regular_file(path, missing) && size_or_zero(path) == size;
}

}  // namespace

FileLock::FileLock(const fs::path& path, const std::stop_token& stop,
                   const std::function<void()>& when_taken)
    : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  check(fd_ >= 0, "cannot open ", path.string(), ": ", std::strerror(errno));
  for (bool is_first = true; ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
       is_first = false) {
    if (is_first) when_taken();
    if (stop.stop_requested()) {
      ::close(fd_);
      throw Cancelled("stopped");
    }
    std::this_thread::sleep_for(kAskAgain);
  }
}

FileLock::~FileLock() { ::close(fd_); }

CachedRepository::CachedRepository(const fs::path& cache, const std::string& repository)
    : folder_(cache / folder_of_repository(repository)),
      locks_(cache / ".locks" / folder_of_repository(repository)) {}

fs::path CachedRepository::blob(const HubFile& file) const { return folder_ / "blobs" / file.etag; }

fs::path CachedRepository::incomplete(const HubFile& file) const {
  return folder_ / "blobs" / (file.etag + ".incomplete");
}

fs::path CachedRepository::lock(const HubFile& file) const {
  return locks_ / (file.etag + ".lock");
}

fs::path CachedRepository::snapshot(const std::string& commit) const {
  return folder_ / "snapshots" / commit;
}

fs::path CachedRepository::contents(const HubFile& file, const std::string& commit) const {
  for (const auto& path : {blob(file), snapshot(commit) / file.path})
    if (has_size(path, file.size)) return path;
  return {};
}

std::uint64_t CachedRepository::bytes_here(const HubFile& file, const std::string& commit) const {
  return contents(file, commit).empty() ? std::min(size_or_zero(incomplete(file)), file.size)
                                        : file.size;
}

std::uint64_t CachedRepository::free_bytes() const {
  std::error_code failure;
  auto folder = folder_;
  while (folder.has_relative_path() && !fs::exists(folder, failure)) folder = folder.parent_path();
  const auto space = fs::space(folder, failure);
  return failure ? ~std::uint64_t(0) : std::uint64_t(space.available);
}

void CachedRepository::prepare() const {
  make_folder(folder_ / "blobs");
  make_folder(locks_);
}

void CachedRepository::link(const HubFile& file, const std::string& commit) const {
  const auto path = snapshot(commit) / file.path;
  const auto target = fs::path("blobs") / file.etag;
  if (!fs::exists(blob(file))) return;  // the snapshot has it
  make_folder(path.parent_path());
  const auto up = folder_.lexically_relative(path.parent_path());
  std::error_code failure;
  if (fs::is_symlink(path, failure) && fs::read_symlink(path, failure) == up / target) return;
  fs::remove(path, failure);
  fs::create_symlink(up / target, path, failure);
  if (!failure) return;
  fs::rename(blob(file), path, failure);  // a file system without links
  check(!failure, "cannot write ", path.string(), ": ", failure.message());
}

void CachedRepository::write_ref(const std::string& revision, const std::string& commit) const {
  const auto path = folder_ / "refs" / revision;
  make_folder(path.parent_path());
  write_file(path, commit);
}

}  // namespace braid::net
