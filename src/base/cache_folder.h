// Where Braid keeps what it may make again.
#pragma once

#include <filesystem>
#include <string>

namespace braid {

// XDG_CACHE_HOME/braid/NAME, or ~/.cache/braid/NAME; empty without a home. It need not exist.
std::filesystem::path cache_folder(const std::string& name);

}  // namespace braid
