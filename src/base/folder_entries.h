// What lies directly in a folder, also in one that cannot be read to its end.
#pragma once

#include <filesystem>
#include <system_error>
#include <vector>

namespace braid {

// In the system's order. `failure` says why entries may be missing: the folder could not be opened,
// or not read to its end. A range-for over a directory_iterator would throw in the latter case.
inline std::vector<std::filesystem::directory_entry> entries_in(const std::filesystem::path& folder,
                                                                std::error_code& failure) {
  std::vector<std::filesystem::directory_entry> entries;
  failure.clear();
  std::filesystem::directory_iterator entry(folder, failure);
  for (; !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure))
    entries.push_back(*entry);
  return entries;
}

}  // namespace braid
