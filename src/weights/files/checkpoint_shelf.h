// A cache of opened checkpoints: a run asks several times for the same files.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "weights/files/checkpoint.h"

namespace braid {

// Its checkpoints stay mapped as long as it lives; what is read of them is released as it is used.
// Any number of threads may use it.
class CheckpointShelf {
 public:
  // Both do what those of Checkpoint do, but each file is opened once.
  Checkpoint open(const std::filesystem::path& folder, const std::string& stem);
  Checkpoint open_file(const std::filesystem::path& path);
  // A file, or a folder whose file is named after `stem`.
  Checkpoint open_any(const std::filesystem::path& path, const std::string& stem);

 private:
  template <class Open>
  Checkpoint find_or(const std::filesystem::path& key, const Open& open);

  std::mutex mutex_;
  std::map<std::filesystem::path, Checkpoint> opened_;
};

}  // namespace braid
