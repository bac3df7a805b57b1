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
  // How a file was when it was read; one that is not there is always the same.
  struct Stamp {
    std::filesystem::file_time_type changed = {};
    std::uintmax_t bytes = 0;

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
