#include "base/loaded_libraries.h"

#include <link.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"

namespace braid {

std::vector<std::string> loaded_libraries(std::string_view name) {
  struct Search {
    std::string_view name;
    std::vector<std::string> found = {};
  };
  Search search{.name = name};
  const auto look = [](dl_phdr_info* library, std::size_t, void* data) {
    auto& all = *static_cast<Search*>(data);
    const std::filesystem::path file = library->dlpi_name;
    if (!file.filename().string().starts_with(all.name)) return 0;
    std::error_code unknown;
    const auto real = std::filesystem::canonical(file, unknown);
    all.found.push_back(unknown ? file.string() : real.string());
    return 0;
  };
  ::dl_iterate_phdr(look, &search);
  std::sort(search.found.begin(), search.found.end());
  search.found.erase(std::unique(search.found.begin(), search.found.end()), search.found.end());
  return search.found;
}

std::string why_runtimes_clash() {
  for (const auto* const name : {"libcudart", "libamdhip64"}) {
    const auto files = loaded_libraries(name);
    if (files.size() < 2) continue;
    std::string list;
    for (const auto& file : files) list += (list.empty() ? "" : " and ") + file;
    return text_of(
        "the runtime ", name, " is loaded ", files.size(), " times, from ", list,
        ": what one makes the other does not know, so a GPU may fail with 'invalid device "
        "function' or 'invalid resource handle'; only LibTorch's should be found");
  }
  return {};
}

}  // namespace braid
