#include "base/cache_folder.h"

#include <cstdlib>

namespace braid {

std::filesystem::path cache_folder(const std::string& name) {
  const auto below = [&](const char* variable, const char* folder) {
    const auto* const value = std::getenv(variable);
    if (!value || *value == '\0') return std::filesystem::path();
    return std::filesystem::path(value) / folder / "braid" / name;
  };
  const auto caches = below("XDG_CACHE_HOME", "");
  return caches.empty() ? below("HOME", ".cache") : caches;
}

}  // namespace braid
