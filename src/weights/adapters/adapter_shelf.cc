#include "weights/adapters/adapter_shelf.h"

#include <sys/stat.h>

namespace braid {

AdapterShelf::Stamp AdapterShelf::stamp_of(const std::filesystem::path& path) {
  struct stat file = {};
  if (::stat(path.c_str(), &file) != 0) return {};
  const auto nanoseconds = [](const timespec& time) {
    return std::int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
  };
  return {.modified = nanoseconds(file.st_mtim),
          .changed = nanoseconds(file.st_ctim),
          .number = file.st_ino,
          .bytes = std::uint64_t(file.st_size)};
}

std::vector<AppliedAdapter> AdapterShelf::open(const std::vector<Adapter>& adapters) {
  std::vector<AppliedAdapter> applied;
  for (const auto& adapter : adapters) {
    std::vector<Stamp> stamps;
    for (const auto& file : files_of_adapter(adapter.file)) stamps.push_back(stamp_of(file));
    auto& known = opened_[adapter.file];
    if (!known.file || known.stamps != stamps)
      known = {open_adapters({adapter}).front().file, std::move(stamps)};
    check_scale(adapter);
    applied.push_back({known.file, adapter.scale});
  }
  return applied;
}

}  // namespace braid
