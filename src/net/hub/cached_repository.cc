#include "net/hub/cached_repository.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

// Whether a system call failed for what the machine lacks; else the folder asked for is unusable.
bool is_of_machine(int failure) {
  constexpr std::array kFailures = {ENOSPC, EDQUOT, EIO, ENOMEM, EMFILE, ENFILE};
  return std::ranges::find(kFailures, failure) != kFailures.end();
}

// Throws Error or InputError, by whose fault it is that `what` cannot be done in the cache.
[[noreturn]] void refuse_cache(const std::string& what, int failure) {
  check(!is_of_machine(failure), what, ": ", std::strerror(failure));
  throw InputError(text_of(what, ": ", std::strerror(failure)));
}

void make_folder(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) refuse_cache("cannot create the folder " + folder.string(), failure.value());
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

bool is_link_to(const fs::path& path, const fs::path& target) {
  std::error_code missing;
  return fs::is_symlink(path, missing) && fs::read_symlink(path, missing) == target;
}

// Several processes may do this at once: what exists suddenly is tried again.
bool place_link(const fs::path& path, const fs::path& target) {
  constexpr int kMostAttempts = 100;  // a folder of this name stays in the way
  std::error_code failure = std::make_error_code(std::errc::file_exists);
  for (int i = 0; i < kMostAttempts && failure == std::errc::file_exists; ++i) {
    fs::remove(path, failure);
    fs::create_symlink(target, path, failure);
    if (!failure || is_link_to(path, target)) return true;
  }
  return false;
}

// A group that shares a cache shares its locks, whatever the umask: huggingface_hub gives them this
// mode. The file of another user keeps its own mode; where it is not writable, a descriptor that
// only reads can hold the lock.
int open_lock(const fs::path& path) {
  constexpr mode_t kForTheGroup = 0664;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kForTheGroup);
  if (fd >= 0) (void)::fchmod(fd, kForTheGroup);
  if (fd >= 0 || errno != EACCES) return fd;
  const int for_reading = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (for_reading < 0) errno = EACCES;
  return for_reading;
}

}  // namespace

FileLock::FileLock(const fs::path& path, const std::stop_token& stop,
                   const std::function<void()>& when_taken)
    : fd_(open_lock(path)) {
  if (fd_ < 0) refuse_cache("cannot open " + path.string(), errno);
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

CachedRepository::CachedRepository(const fs::path& cache, const std::string& repository,
                                   Links links)
    : folder_(cache / folder_of_repository(repository)),
      locks_(cache / ".locks" / folder_of_repository(repository)),
      links_(links) {}

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

// A file of the same contents, if its own are not here.
fs::path CachedRepository::source(const HubFile& file, const std::vector<HubFile>& files,
                                  const std::string& commit) const {
  auto found = contents(file, commit);
  for (const auto& other : files)
    if (found.empty() && other.etag == file.etag) found = contents(other, commit);
  return found;
}

CachedRepository::Placed CachedRepository::place(const HubFile& file, const fs::path& from,
                                                 const std::string& commit,
                                                 const std::stop_token& stop) const {
  const auto path = snapshot(commit) / file.path;
  if (from == path) return Placed::kAsItWas;
  const auto target = folder_.lexically_relative(path.parent_path()) / "blobs" / file.etag;
  if (is_link_to(path, target)) return Placed::kAsItWas;
  make_folder(path.parent_path());
  if (links_ == Links::kSymbolic && from == blob(file) && place_link(path, target))
    return Placed::kAsLink;
  make_folder(locks_);
  const FileLock locked(lock(file), stop, [] {});
  std::error_code failure;
  if (!fs::is_symlink(path, failure) && has_size(path, file.size))
    return Placed::kAsCopy;  // another process has made it meanwhile
  fs::remove(path, failure);
  const auto partial = path.string() + ".incomplete";  // no model is half there
  fs::copy_file(from, partial, fs::copy_options::overwrite_existing, failure);
  if (!failure) fs::rename(partial, path, failure);
  if (failure) refuse_cache("cannot write " + path.string(), failure.value());
  return Placed::kAsCopy;
}

void CachedRepository::publish(const std::vector<HubFile>& files, const std::string& commit,
                               const std::stop_token& stop) const {
  std::vector<fs::path> copied;
  for (const auto& file : files) {
    const auto from = source(file, files, commit);
    check(!from.empty(), "the contents of ", file.path, " are not in ", folder_.string());
    if (place(file, from, commit, stop) == Placed::kAsCopy) copied.push_back(blob(file));
  }
  std::error_code ignored;
  for (const auto& path : copied) fs::remove(path, ignored);
}

void CachedRepository::write_ref(const std::string& revision, const std::string& commit) const {
  const auto path = folder_ / "refs" / revision;
  if (has_size(path, commit.size()) && read_file(path) == commit) return;
  make_folder(path.parent_path());
  write_file(path, commit);
}

}  // namespace braid::net
