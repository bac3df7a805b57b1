// A cache of opened adapter files, for callers that request the same ones repeatedly.
#pragma once

#include <map>

#include "weights/adapters/adapter_file.h"

namespace braid {

class AdapterShelf {
 public:
  // Does what open_adapters() does, but reuses files unchanged since they were last opened, also
  // those in folders.
  std::vector<AppliedAdapter> open(const std::vector<Adapter>& adapters);

 private:
  // How a file was when it was read; one that is not there is always the same. Whoever sets its
  // time of modification back changes that of its state.
  struct Stamp {
    std::int64_t modified = 0, changed = 0;  // nanoseconds
    std::uint64_t number = 0, bytes = 0;     // of the inode; the size

    bool operator==(const Stamp&) const = default;
  };
  struct Opened {
    std::shared_ptr<const AdapterFile> file;
    std::vector<Stamp> stamps;  // of all files that it was read from
  };
  static Stamp stamp_of(const std::filesystem::path& path);
  std::map<std::filesystem::path, Opened> opened_;
};

}  // namespace braid
