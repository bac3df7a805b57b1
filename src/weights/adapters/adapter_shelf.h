// Files of adapters that have been opened, for those who ask for the same again and again.
#pragma once

#include <map>

#include "weights/adapters/adapter_file.h"

namespace braid {

class AdapterShelf {
 public:
  // As open_adapters(); a file that has not changed since is the one that was opened before.
  std::vector<AppliedAdapter> open(const std::vector<Adapter>& adapters);

 private:
  struct Opened {
    std::shared_ptr<const AdapterFile> file;
    std::filesystem::file_time_type changed;
    std::uintmax_t bytes;
  };
  std::map<std::filesystem::path, Opened> opened_;
};

}  // namespace braid
