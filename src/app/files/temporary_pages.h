// A folder for files of weights that lasts as long as the program needs it.
#pragma once

#include <filesystem>

namespace braid {

class TemporaryPages {
 public:
  // In the folder that TMPDIR names, or in /var/tmp: /tmp is often in memory. Such folders that
  // programs left behind when they were killed are removed. Throws Error where none can be made.
  TemporaryPages();
  TemporaryPages(const TemporaryPages&) = delete;
  TemporaryPages& operator=(const TemporaryPages&) = delete;
  ~TemporaryPages();  // removes it

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  int lock_ = -1;  // a descriptor that says that somebody uses the folder
};

}  // namespace braid
