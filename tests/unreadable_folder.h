// A disk that fails while a folder is read: takes the place of readdir() in a test program, one of
// whose files includes this.
#pragma once

#include <dirent.h>
#include <dlfcn.h>

#include <cerrno>

namespace braid {

// While it lives, the thread's folders open as ever and fail after so many entries.
class UnreadableFolders {
 public:
  explicit UnreadableFolders(int num_entries) { left_ = num_entries; }
  UnreadableFolders(const UnreadableFolders&) = delete;
  UnreadableFolders& operator=(const UnreadableFolders&) = delete;
  ~UnreadableFolders() { left_ = kNeverFails; }

  static bool has_failed() {
    if (left_ == 0) return true;
    if (left_ > 0) --left_;
    return false;
  }

 private:
  static constexpr int kNeverFails = -1;
  static inline thread_local int left_ = kNeverFails;
};

}  // namespace braid

extern "C" __attribute__((visibility("default"))) dirent* readdir(DIR* folder) {
  static const auto of_system = reinterpret_cast<dirent* (*)(DIR*)>(::dlsym(RTLD_NEXT, "readdir"));
  if (!braid::UnreadableFolders::has_failed()) return of_system(folder);
  errno = EIO;
  return nullptr;
}
