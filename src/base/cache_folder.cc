#include "base/cache_folder.h"

#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

namespace braid {
namespace {

std::filesystem::path below(const std::filesystem::path& caches, const std::string& name) {
  return caches / "braid" / name;
}

}  // namespace

std::optional<std::string> home_folder() {
  if (const auto* const home = std::getenv("HOME")) return home;
  constexpr std::size_t kMostBytes = 1 << 20;
  for (std::size_t bytes = 1 << 12; bytes <= kMostBytes; bytes *= 2) {
    std::vector<char> texts(bytes);
    passwd entry{};
    passwd* found = nullptr;
    const int failure = ::getpwuid_r(::getuid(), &entry, texts.data(), texts.size(), &found);
    if (failure == ERANGE) continue;  // the texts need more room
    if (failure != 0 || !found || !entry.pw_dir) return {};
    return entry.pw_dir;
  }
  return {};
}

std::filesystem::path cache_folder(const std::string& name) {
  const auto* const caches = std::getenv("XDG_CACHE_HOME");
  if (caches && std::filesystem::path(caches).is_absolute()) return below(caches, name);
  const std::filesystem::path home = home_folder().value_or("");
  return home.is_absolute() ? below(home / ".cache", name) : std::filesystem::path();
}

}  // namespace braid
