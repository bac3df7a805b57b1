// A cache of opened adapter files, for callers that request the same ones repeatedly.
#pragma once

#include <map>

#include "weights/adapters/adapter_file.h"

namespace braid {

class AdapterShelf {
 public:
  // Does what open_adapters() does, but reuses files unchanged since they were last opened.
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
