#include "weights/adapters/adapter_shelf.h"

namespace braid {

AdapterShelf::Stamp AdapterShelf::stamp_of(const std::filesystem::path& path) {
  std::error_code missing;
  const auto bytes = std::filesystem::file_size(path, missing);
  if (missing) return {};
  return {.changed = std::filesystem::last_write_time(path, missing), .bytes = bytes};
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
