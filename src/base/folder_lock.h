// A folder that one process at a time works in.
#pragma once

#include <filesystem>

namespace braid {

// Held until it is destroyed, or the process ends in whatever way. Move-only.
class FolderLock {
 public:
  // Does not wait. File systems that have no locks of folders (NFS) give it to whoever asks. Throws
  // Error naming the path when it cannot be opened.
  explicit FolderLock(const std::filesystem::path& path);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock(const FolderLock&) = delete;
  ~FolderLock();

  // Whether nobody else has it, and it still has its name: who had it before may have renamed it.
  bool is_held() const { return is_held_; }

 private:
  int fd_;
  bool is_held_;
};

}  // namespace braid
