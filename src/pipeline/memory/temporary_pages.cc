#include "pipeline/memory/temporary_pages.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/folder_entries.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStem = "braid-pages-";
// Stands in folders that may be removed: others of such names are a person's.
constexpr const char* kMark = ".temporary";

fs::path folder_of_all() {
  const char* const said = std::getenv("TMPDIR");
  return said && *said ? said : "/var/tmp";
}

bool is_marked(const fs::path& folder, int fd) {
  struct stat status {};
  std::error_code failed;
  return ::fstat(fd, &status) == 0 && status.st_uid == ::geteuid() &&
         fs::is_regular_file(fs::symlink_status(folder / kMark, failed));
}

// A descriptor that locks the folder, or -1: it is in use, or not a folder of this user.
int locked(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || ::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  ::close(fd);
  return -1;
}

void remove_abandoned(const fs::path& all) {
  std::error_code failed;
  for (const auto& entry : entries_in(all, failed)) {
    if (!entry.path().filename().string().starts_with(kStem)) continue;
    const int lock = locked(entry.path());
    if (lock < 0) continue;
    if (is_marked(entry.path(), lock)) fs::remove_all(entry.path(), failed);
    ::close(lock);
  }
}

}  // namespace

// Another process that looks for the mark may hold the lock for a moment: then a new folder is
// created. On file systems without locks the last one stays unmarked, so that nobody removes it.
TemporaryPages::TemporaryPages() {
  const auto all = folder_of_all();
  remove_abandoned(all);
  std::error_code failed;
  for (int tries = 0; lock_ < 0 && tries < 3; ++tries) {
    fs::remove_all(folder_, failed);
    auto name = (all / kStem).string() + "XXXXXX";
    const bool is_made = ::mkdtemp(name.data()) != nullptr;
    check(is_made, "cannot make a folder for weights in ", all, ": ", std::strerror(errno),
          ": set TMPDIR to a folder that can be written");
    folder_ = name;
    lock_ = locked(folder_);
    if (lock_ >= 0) std::ofstream(folder_ / kMark) << "Braid removes this folder.\n";
  }
}

TemporaryPages::~TemporaryPages() {
  std::error_code failed;
  fs::remove_all(folder_, failed);
  ::close(lock_);
}

}  // namespace braid
