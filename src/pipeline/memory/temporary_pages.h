// A folder for files of weights that exists as long as the program needs it.
#pragma once

#include <filesystem>

namespace braid {

class TemporaryPages {
 public:
  // The folder lies in the one that TMPDIR names, or in /var/tmp: /tmp is often in memory. Removes
  // such folders left behind by killed programs. Throws Error if none can be created.
  TemporaryPages();
  TemporaryPages(const TemporaryPages&) = delete;
  TemporaryPages& operator=(const TemporaryPages&) = delete;
  ~TemporaryPages();  // removes it

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  int lock_ = -1;  // a descriptor whose lock marks the folder as in use
};

}  // namespace braid
