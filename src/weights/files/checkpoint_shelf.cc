#include "weights/files/checkpoint_shelf.h"

#include "base/file.h"

namespace braid {

template <class Open>
Checkpoint CheckpointShelf::find_or(const std::filesystem::path& key, const Open& open) {
  const std::scoped_lock lock(mutex_);
  const auto known = opened_.find(key);
  return known != opened_.end() ? known->second : opened_.emplace(key, open()).first->second;
}

Checkpoint CheckpointShelf::open(const std::filesystem::path& folder, const std::string& stem) {
  return find_or(folder / stem, [&] { return Checkpoint::open(folder, stem); });
}

Checkpoint CheckpointShelf::open_file(const std::filesystem::path& path) {
  return find_or(path, [&] { return Checkpoint::open_file(path); });
}

Checkpoint CheckpointShelf::open_any(const std::filesystem::path& path, const std::string& stem) {
  return is_folder(path) ? open(path, stem) : open_file(path);
}

}  // namespace braid
