// A folder that only one process at a time works in.
#pragma once

#include <filesystem>

#include "base/file_descriptor.h"

namespace braid {

// Held until destroyed, or until the process ends in any way. Move-only.
class FolderLock {
 public:
  // Does not wait. File systems without folder locks (NFS) grant it to everybody. Throws Error
  // naming the path if it cannot be opened.
  explicit FolderLock(const std::filesystem::path& path);

  // Whether nobody else holds it and the folder still has its name: a previous holder may have
  // renamed it.
  bool is_held() const { return is_held_ && folder_.is_open(); }

 private:
  FileDescriptor folder_;
  bool is_held_;
};

}  // namespace braid
