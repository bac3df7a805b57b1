#include "weights/adapters/adapter_shelf.h"

namespace braid {

std::vector<AppliedAdapter> AdapterShelf::open(const std::vector<Adapter>& adapters) {
  std::vector<AppliedAdapter> applied;
  for (const auto& adapter : adapters) {
    std::error_code missing;  // opening the file reports it better
    const auto changed = std::filesystem::last_write_time(adapter.file, missing);
    const auto bytes = std::filesystem::file_size(adapter.file, missing);
    const auto known = opened_.find(adapter.file);
    const bool is_same =
        known != opened_.end() && known->second.changed == changed && known->second.bytes == bytes;
    if (!is_same) opened_[adapter.file] = {open_adapters({adapter}).front().file, changed, bytes};
    check_scale(adapter);
    applied.push_back({opened_.at(adapter.file).file, adapter.scale});
  }
  return applied;
}

}  // namespace braid
